#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/sass/cubin.h"
#include "emulator/sass/statement.h"
#include "emulator/sass/subroutines.h"

namespace torpor::sass {

// How to load from a constant bank; see Emitter::BankAddress.
struct ConstantBank {
  Value address;
  std::uint32_t first = 0;
  std::string_view load = "ld.const.";
};

// Records the PTX statements of one kernel. Functions that translate instructions read operands,
// compute in temporaries and write registers last, since a destination may also be a source. Not
// thread-safe; the constructor's arguments must outlive the emitter.
class Emitter {
 public:
  Emitter(const Cubin& cubin, const CubinKernel& kernel, const Subroutines& subroutines);

  // Sources. RZ reads as 0, PT as true. The caller applies the modifiers of a SourceOperand
  // (negated, absolute).
  Value Read(Register reg);
  Value Read(const SourceOperand& source);
  Value Read(const PredicateOperand& predicate);
  // 64 bits: two consecutive registers, or eight bytes of a constant bank. A 32-bit immediate is
  // sign-extended.
  Value ReadPair(Register reg);
  Value ReadPair(const SourceOperand& source);
  // The word of a constant bank at byte `offset`.
  Value Constant(std::uint32_t bank, std::uint32_t offset, Width width = Width::k32);
  // Whether `low` and `high` came from Constant as the two words of eight bytes of a bank; and
  // those eight bytes.
  bool AreHalvesOfConstant(const Value& low, const Value& high) const;
  Value WholeConstant(const Value& low);
  static Value Number(std::int64_t number);
  static Value Text(std::string_view text);

  // Destinations. Writes to RZ and PT are dropped, also in a pair.
  Value Write(Register reg);
  Value WritePair(Register reg);
  Value Temporary(Width width);

  // Adds a statement under the instruction's guard.
  void Emit(std::string_view format, std::vector<Value> values);
  // Adds an unguarded statement without side effects. Returns its result, a new temporary for the
  // first ? of the format.
  Value Compute(Width width, std::string_view format, std::vector<Value> sources);

  // As Emit, under the condition `predicate` as well.
  void EmitIf(const Value& predicate, std::string_view format, std::vector<Value> values);

  // Attaches `half` to the statement before; see fuse.h.
  void MarkHalf(Half half);

  // Moves `from` to a register.
  void Move(Register to, Value from);

  // Control flow: branches to the instruction at `target` under the guard, and under `predicate`.
  void Branch(std::uint64_t target);
  void BranchIf(const Value& predicate, std::uint64_t target);
  // Statements after which the thread does not continue.
  void End(std::string_view format);
  void EndIf(const Value& predicate, std::string_view format);

  // Begins the translation of `instruction`, which may change its own guard.
  void Begin(const MachineInstruction& instruction);
  // Ends the translation of the current instruction and applies the guard.
  void Finish();

  // Fails: the instruction cannot be translated. The error appends `why` to the name.
  void Unsupported(std::string_view why);
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

  const Cubin& cubin() const { return cubin_; }
  const CubinKernel& kernel() const { return kernel_; }
  const Subroutines& subroutines() const { return subroutines_; }
  const std::vector<Statement>& prologue() const { return prologue_; }
  std::vector<Statement>& statements() { return statements_; }
  std::vector<Width>& temporaries() { return temporaries_; }

  // Size of local memory; addresses are below this number.
  std::uint64_t local_bytes() const;
  // The 64-bit generic address at which local or shared memory begins.
  Value LocalBase();
  Value SharedBase();
  // Keeps the kernel's shared memory at address 0 of its layout.
  void UseShared();
  // Returns where to load constants of a bank from: `address` points to c[bank][first], for `load`.
  ConstantBank BankAddress(std::uint32_t bank);

  // Adds text to the beginning of the body, unless already added.
  void Declare(const std::string& declaration);
  const std::string& declarations() const { return declarations_; }

 private:
  using ConstantKey = std::tuple<std::uint32_t, std::uint32_t, Width>;

  Value Prepare(Width width, std::string_view format, std::vector<Value> sources);
  Value PrepareOnce(std::string_view key, Width width, std::string_view format);
  Value DriverConstant(std::uint32_t offset, Width width);
  Value ParameterConstant(std::uint32_t offset, Width width);
  Value ImmediateConstant(std::uint32_t offset, Width width);
  void AddStatement(std::string_view format, std::vector<Value> values);
  Value LocalCopyOfBank2();
  std::optional<std::pair<std::uint32_t, std::uint32_t>> PlaceOf(const Value& word) const;

  const Cubin& cubin_;
  const CubinKernel& kernel_;
  const Subroutines& subroutines_;
  std::vector<Statement> prologue_;
  std::vector<Statement> statements_;
  std::vector<Width> temporaries_;
  std::map<ConstantKey, Value> constants_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> places_;  // of temporaries
  std::map<std::string, Value, std::less<>> prepared_;
  std::string declarations_;
  std::string error_;
  MachineInstruction current_;
  std::size_t first_ = 0;  // statement of the current instruction
};

}  // namespace torpor::sass
