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

struct ConstantBank {
  Value address;
  std::uint32_t first = 0;
  std::string_view load = "ld.const.";
};

// Takes down the statements of one kernel. The functions that translate instructions read
// operands, compute in temporaries and write registers last: what is written may be one of the
// sources.
class Emitter {
 public:
  Emitter(const Cubin& cubin, const Kernel& kernel, const Subroutines& subroutines);

  // Sources. RZ is 0, PT a register that is true. Modifiers of a SourceOperand (negated, absolute)
  // are the caller's affair.
  Value Read(Register reg);
  Value Read(const SourceOperand& source);
  Value Read(const PredicateOperand& predicate);
  // 64 bits: a register and the one behind it, or eight bytes of a constant bank. A 32-bit
  // immediate is extended with its sign.
  Value ReadPair(Register reg);
  Value ReadPair(const SourceOperand& source);
  // The 32-bit (or 64-bit) word of a constant bank.
  Value Constant(std::uint32_t bank, std::uint32_t offset, Width width = Width::k32);
  // Whether these are the words of eight bytes of a bank that Constant has been asked for, and
  // those.
  bool AreHalvesOfConstant(const Value& low, const Value& high) const;
  Value WholeConstant(const Value& low);
  static Value Number(std::int64_t number);
  static Value Text(std::string_view text);

  // Destinations. What is written to RZ or PT is lost. A pair's register may be RZ, too.
  Value Write(Register reg);
  Value WritePair(Register reg);
  Value Temporary(Width width);

  // Adds a statement that runs only where the instruction's guard holds.
  void Emit(std::string_view format, std::vector<Value> values);
  // Adds one without effects but its result, which is a new temporary: the first ? of the format.
  // It runs everywhere.
  Value Compute(Width width, std::string_view format, std::vector<Value> sources);

  // As Emit, but only where `predicate` holds, too.
  void EmitIf(const Value& predicate, std::string_view format, std::vector<Value> values);

  // Says what the instruction is whose last statement was the one before.
  void MarkHalf(Half half);

  // mov to a register.
  void Move(Register to, Value from);

  // Control flow: to the instruction at `target`, where the guard holds, and where `predicate`
  // does, too.
  void Branch(std::uint64_t target);
  void BranchIf(const Value& predicate, std::uint64_t target);
  // The thread ends, or never gets behind this.
  void End(std::string_view format);
  void EndIf(const Value& predicate, std::string_view format);

  // Sets what follows apart as the translation of `instruction`; its guard may be changed by
  // itself.
  void Begin(const Instruction& instruction);
  void Finish();

  // The instruction cannot be translated; `why` goes behind its name.
  void Unsupported(std::string_view why);
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

  const Cubin& cubin() const { return cubin_; }
  const Kernel& kernel() const { return kernel_; }
  const Subroutines& subroutines() const { return subroutines_; }
  const std::vector<Statement>& prologue() const { return prologue_; }
  std::vector<Statement>& statements() { return statements_; }
  std::vector<Width>& temporaries() { return temporaries_; }

  // Addresses of local memory are numbers from 0 to this.
  std::uint64_t local_bytes() const;
  // The generic address at which local or shared memory begins, in 64 bits.
  Value LocalBase();
  Value SharedBase();
  // Keeps the kernel's shared memory in its layout, where it begins at 0.
  void UseShared();
  // Where to load constants of a bank from: c[bank][first] is at `address`, for `load`.
  ConstantBank BankAddress(std::uint32_t bank);

  // Text for the beginning of the body, once.
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
  const Kernel& kernel_;
  const Subroutines& subroutines_;
  std::vector<Statement> prologue_;
  std::vector<Statement> statements_;
  std::vector<Width> temporaries_;
  std::map<ConstantKey, Value> constants_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> places_;  // of temporaries
  std::map<std::string, Value, std::less<>> prepared_;
  std::string declarations_;
  std::string error_;
  Instruction current_;
  std::size_t first_ = 0;  // statement of the current instruction
};

}  // namespace torpor::sass
