#include "emulator/sass/emitter.h"

#include <cstring>
#include <utility>

#include "emulator/sass/kernel_ptx.h"

namespace torpor::sass {
namespace {

unsigned BytesOf(Width width) { return width == Width::k64 ? 8 : 4; }

Value MakeTemporary(std::uint32_t number, Width width) {
  Value value;
  value.kind = Value::Kind::kTemporary;
  value.temporary = number;
  value.width = width;
  return value;
}

// Words that the driver puts before the parameters in constant bank 0. The address at 0x50 refers
// to 64 bytes outside all spaces of PTX: null here.
struct DriverWord {
  std::uint32_t offset;
  std::string_view move;  // PTX
};
constexpr DriverWord kDriverWords[] = {{0x00, "u32 ?, %ntid.x"},
                                       {0x04, "u32 ?, %ntid.y"},
                                       {0x08, "u32 ?, %ntid.z"},
                                       {0x0c, "u32 ?, %nctaid.x"},
                                       {0x10, "u32 ?, %nctaid.y"},
                                       {0x14, "u32 ?, %nctaid.z"},
                                       {0x2c, "u32 ?, %dynamic_smem_size"},
                                       {0x50, "b32 ?, 0"},
                                       {0x54, "b32 ?, 0"},
                                       {0x88, "b32 ?, %envreg0"},
                                       {0x8c, "b32 ?, %envreg1"},
                                       {0x90, "b32 ?, %envreg2"},
                                       {0x10c, "u32 ?, %nsmid"}};
constexpr std::uint32_t kGridId = 0x30;      // eight bytes
constexpr std::uint32_t kSharedBase = 0x18;  // eight bytes
constexpr std::uint32_t kLocalBase = 0x20;   // eight bytes
constexpr std::uint32_t kStackTop = 0x28;    // four bytes

}  // namespace

Emitter::Emitter(const Cubin& cubin, const CubinKernel& kernel, const Subroutines& subroutines)
    : cubin_(cubin), kernel_(kernel), subroutines_(subroutines) {}

Value Emitter::Number(std::int64_t number) { return Text(std::to_string(number)); }

Value Emitter::Text(std::string_view text) {
  Value value;
  value.text = text;
  return value;
}

// Temporaries are numbered; naming.cc gives them PTX registers.
Value Emitter::Temporary(Width width) {
  temporaries_.push_back(width);
  return MakeTemporary(static_cast<std::uint32_t>(temporaries_.size() - 1), width);
}

// Fixed predicates need a register in PTX, which the prologue sets once.
Value Emitter::Read(Register reg) {
  if (reg.is_fixed()) {
    if (!reg.is_predicate()) return Number(0);
    return PrepareOnce("true", Width::kPredicate, "setp.eq.u32 ?, 0, 0");
  }
  Value value;
  value.kind = Value::Kind::kRegister;
  value.reg = reg;
  value.width = reg.is_predicate() ? Width::kPredicate : Width::k32;
  return value;
}

Value Emitter::Read(const PredicateOperand& predicate) {
  if (predicate.never()) return PrepareOnce("false", Width::kPredicate, "setp.ne.u32 ?, 0, 0");
  Value value = Read(predicate.reg);
  if (!predicate.negated) return value;
  return Compute(Width::kPredicate, "not.pred ?, ?", {value});
}

Value Emitter::Read(const SourceOperand& source) {
  switch (source.kind) {
    case SourceOperand::Kind::kRegister:
      return Read(source.reg);
    case SourceOperand::Kind::kImmediate:
      return Number(static_cast<std::int32_t>(source.immediate));
    case SourceOperand::Kind::kConstant:
      return Constant(source.bank, source.offset);
    case SourceOperand::Kind::kBindlessConstant:
      break;
  }
  Unsupported("with a constant bank that a register names");
  return Number(0);
}

// The first register of the pair stands for both.
Value Emitter::ReadPair(Register reg) {
  if (reg.is_fixed()) return Number(0);
  Value value = Read(reg);
  value.kind = Value::Kind::kPair;
  value.width = Width::k64;
  return value;
}

Value Emitter::ReadPair(const SourceOperand& source) {
  switch (source.kind) {
    case SourceOperand::Kind::kRegister:
      return ReadPair(source.reg);
    case SourceOperand::Kind::kConstant:
      return Constant(source.bank, source.offset, Width::k64);
    default:
      return Read(source);
  }
}

// Dropped writes go to a temporary, since PTX needs a destination.
Value Emitter::Write(Register reg) {
  if (reg.is_fixed()) return Temporary(reg.is_predicate() ? Width::kPredicate : Width::k32);
  Value value = Read(reg);
  value.written = true;
  return value;
}

Value Emitter::WritePair(Register reg) {
  if (reg.is_fixed()) return Temporary(Width::k64);
  Value value = ReadPair(reg);
  value.written = true;
  return value;
}

// Adds an unguarded statement of the current instruction.
void Emitter::AddStatement(std::string_view format, std::vector<Value> values) {
  Statement statement;
  statement.format = format;
  statement.values = std::move(values);
  statement.offset = current_.offset;
  statements_.push_back(std::move(statement));
}

// Finish replaces an empty guard by the instruction's.
void Emitter::Emit(std::string_view format, std::vector<Value> values) {
  AddStatement(format, std::move(values));
  statements_.back().guard = Value{};
}

Value Emitter::Compute(Width width, std::string_view format, std::vector<Value> sources) {
  Value result = Temporary(width);
  sources.insert(sources.begin(), result);
  AddStatement(format, std::move(sources));
  return result;
}

// Combines the predicate with the guard, so that Finish leaves the statement alone.
void Emitter::EmitIf(const Value& predicate, std::string_view format, std::vector<Value> values) {
  const PredicateOperand guard = current_.guard();
  const Value both = guard.always()
                         ? predicate
                         : Compute(Width::kPredicate, "and.pred ?, ?, ?", {predicate, Read(guard)});
  AddStatement(format, std::move(values));
  statements_.back().guard = both;
}

void Emitter::MarkHalf(Half half) { statements_.back().half = std::move(half); }

void Emitter::Move(Register to, Value from) {
  if (to.is_fixed()) return;
  Emit(to.is_predicate() ? "mov.pred ?, ?" : "mov.b32 ?, ?", {Write(to), std::move(from)});
}

void Emitter::Branch(std::uint64_t target) {
  Emit("bra", {});
  statements_.back().targets = {target};
  statements_.back().ends = true;
}

void Emitter::BranchIf(const Value& predicate, std::uint64_t target) {
  EmitIf(predicate, "bra", {});
  statements_.back().targets = {target};
  statements_.back().ends = true;
}

void Emitter::End(std::string_view format) {
  Emit(format, {});
  statements_.back().ends = true;
}

void Emitter::EndIf(const Value& predicate, std::string_view format) {
  EmitIf(predicate, format, {});
  statements_.back().ends = true;
}

void Emitter::Begin(const MachineInstruction& instruction) {
  current_ = instruction;
  first_ = statements_.size();
}

// Gives the current instruction's guard to its statements. If one of them writes the guard's
// register before others, those use a copy.
void Emitter::Finish() {
  const PredicateOperand guard = current_.guard();
  const auto wants_guard = [](const Statement& statement) {
    return statement.guard.has_value() && statement.guard->kind == Value::Kind::kText;
  };
  if (guard.reg.is_fixed()) {
    for (std::size_t i = first_; i < statements_.size(); ++i) {
      if (wants_guard(statements_[i])) statements_[i].guard.reset();
    }
    return;
  }
  Value predicate = Read(guard.reg);
  for (std::size_t i = first_; i + 1 < statements_.size(); ++i) {
    for (const Value& value : statements_[i].values) {
      if (!value.written || value.reg != guard.reg) continue;
      Statement copy;
      copy.format = "mov.pred ?, ?";
      copy.values = {Temporary(Width::kPredicate), predicate};
      copy.offset = current_.offset;
      predicate = copy.values[0];
      statements_.insert(statements_.begin() + static_cast<std::ptrdiff_t>(first_), copy);
      i = statements_.size();
      break;
    }
  }
  for (std::size_t i = first_; i < statements_.size(); ++i) {
    if (!wants_guard(statements_[i])) continue;
    statements_[i].guard = predicate;
    statements_[i].guard_negated = guard.negated;
  }
}

// Keeps the first reason; later statements of the kernel are discarded.
void Emitter::Unsupported(std::string_view why) {
  if (!error_.empty()) return;
  error_ = why;
}

// Adds a statement to the prologue, which runs once per thread. Returns its result.
Value Emitter::Prepare(Width width, std::string_view format, std::vector<Value> sources) {
  Value result = Temporary(width);
  Statement statement;
  statement.format = format;
  statement.values = std::move(sources);
  statement.values.insert(statement.values.begin(), result);
  prologue_.push_back(std::move(statement));
  return result;
}

// As Prepare, but only once for each `key`.
Value Emitter::PrepareOnce(std::string_view key, Width width, std::string_view format) {
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) return found->second;
  return prepared_[std::string(key)] = Prepare(width, format, {});
}

Value Emitter::Constant(std::uint32_t bank, std::uint32_t offset, Width width) {
  const ConstantKey key{bank, offset, width};
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  Value value;
  if (bank == 0) {
    // Without parameters nothing says where they would begin.
    const bool is_driver = offset < kernel_.parameter_base || kernel_.parameter_bytes == 0;
    value = is_driver ? DriverConstant(offset, width) : ParameterConstant(offset, width);
  } else if (bank == 2) {
    value = ImmediateConstant(offset, width);
  } else if (const Memory* memory = cubin_.Bank(bank); memory != nullptr) {
    if (offset > memory->bytes || memory->bytes - offset < BytesOf(width)) {
      Unsupported("with a constant behind the end of its bank");
      return Number(0);
    }
    const std::string name =
        MemoryName(static_cast<std::uint32_t>(memory - cubin_.memories.data()));
    value = Prepare(width, width == Width::k64 ? "ld.const.b64 ?, [?]" : "ld.const.b32 ?, [?]",
                    {Text(name + "+" + std::to_string(offset))});
  } else {
    Unsupported("with constant bank " + std::to_string(bank) + ", which is empty");
    return Number(0);
  }
  if (width == Width::k32 && value.kind == Value::Kind::kTemporary) {
    places_[value.temporary] = {bank, offset};
  }
  return constants_[key] = value;
}

// Where a word comes from.
std::optional<std::pair<std::uint32_t, std::uint32_t>> Emitter::PlaceOf(const Value& word) const {
  if (word.kind != Value::Kind::kTemporary) return std::nullopt;
  const auto found = places_.find(word.temporary);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

bool Emitter::AreHalvesOfConstant(const Value& low, const Value& high) const {
  const auto low_place = PlaceOf(low);
  const auto high_place = PlaceOf(high);
  return low_place && high_place && low_place->first == high_place->first &&
         low_place->second % 8 == 0 && low_place->second + 4 == high_place->second;
}

Value Emitter::WholeConstant(const Value& low) {
  const auto [bank, offset] = *PlaceOf(low);
  return Constant(bank, offset, Width::k64);
}

// Words that the driver provides: dimensions, the grid's id, and bases of address spaces.
Value Emitter::DriverConstant(std::uint32_t offset, Width width) {
  if (width == Width::k64) {
    if (offset == kSharedBase) return SharedBase();
    if (offset == kLocalBase) return LocalBase();
    if (offset == kGridId) return Prepare(Width::k64, "mov.u64 ?, %gridid", {});
    return Prepare(Width::k64, "mov.b64 ?, {?, ?}",
                   {Constant(0, offset, Width::k32), Constant(0, offset + 4, Width::k32)});
  }
  for (const DriverWord& word : kDriverWords) {
    if (word.offset == offset) return Prepare(Width::k32, "mov." + std::string(word.move), {});
  }
  if (offset == kGridId || offset == kGridId + 4) {
    return Prepare(Width::k32, offset == kGridId ? "cvt.u32.u64 ?, ?" : "mov.b64 {_, ?}, ?",
                   {Constant(0, kGridId, Width::k64)});
  }
  if (offset == kStackTop) return Number(static_cast<std::int64_t>(local_bytes()));
  const bool is_shared = offset == kSharedBase || offset == kSharedBase + 4;
  if (is_shared || offset == kLocalBase || offset == kLocalBase + 4) {
    const Value base = is_shared ? SharedBase() : LocalBase();
    const std::string_view format = offset % 8 == 0 ? "cvt.u32.u64 ?, ?" : "mov.b64 {_, ?}, ?";
    return Prepare(Width::k32, format, {base});
  }
  Unsupported("with a word of the driver's that is not known: c[0x0][" + std::to_string(offset) +
              "]");
  return Number(0);
}

// Words of the kernel's parameters, loaded in the prologue.
Value Emitter::ParameterConstant(std::uint32_t offset, Width width) {
  const std::uint32_t at = offset - kernel_.parameter_base;
  if (at > kernel_.parameter_bytes || kernel_.parameter_bytes - at < BytesOf(width)) {
    Unsupported("with a constant behind the parameters");
    return Number(0);
  }
  const std::string address = std::string(kParametersName) + "+" + std::to_string(at);
  return Prepare(width, width == Width::k64 ? "ld.param.b64 ?, [?]" : "ld.param.b32 ?, [?]",
                 {Text(address)});
}

// Words of bank 2 are known and become immediates.
Value Emitter::ImmediateConstant(std::uint32_t offset, Width width) {
  const unsigned bytes = BytesOf(width);
  if (offset > kernel_.bank2.size() || kernel_.bank2.size() - offset < bytes) {
    Unsupported("with a constant behind the end of bank 2");
    return Number(0);
  }
  std::int64_t number = 0;
  if (width == Width::k64) {
    std::memcpy(&number, kernel_.bank2.data() + offset, sizeof(number));
  } else {
    std::int32_t word = 0;
    std::memcpy(&word, kernel_.bank2.data() + offset, sizeof(word));
    number = word;
  }
  return Number(number);
}

// The cubin does not tell how deep functions recurse, so a kernel that may call functions gets a
// default stack of 1 KiB on top.
std::uint64_t Emitter::local_bytes() const {
  constexpr std::uint64_t kStackBytes = 1024;
  const bool calls = cubin_.texts[kernel_.text].functions.size() > 1;
  return (kernel_.local_bytes + 15) / 16 * 16 + (calls ? kStackBytes : 0);
}

// Declares the local memory at its first use.
Value Emitter::LocalBase() {
  const auto found = prepared_.find("local");
  if (found != prepared_.end()) return found->second;
  Declare(".local .align 16 .b8 $local[" + std::to_string(local_bytes() + 16) + "];\n");
  const Value offset = Prepare(Width::k64, "mov.u64 ?, $local", {});
  return prepared_["local"] = Prepare(Width::k64, "cvta.local.u64 ?, ?", {offset});
}

Value Emitter::SharedBase() {
  UseShared();
  const auto found = prepared_.find("shared generic");
  if (found != prepared_.end()) return found->second;
  const Value offset = PrepareOnce("shared", Width::k64, "mov.u64 ?, $shared");
  return prepared_["shared generic"] = Prepare(Width::k64, "cvta.shared.u64 ?, ?", {offset});
}

ConstantBank Emitter::BankAddress(std::uint32_t bank) {
  if (bank == 0) {
    return {PrepareOnce("parameters", Width::k64, "mov.u64 ?, $parameters"), kernel_.parameter_base,
            "ld.param."};
  }
  if (bank == 2) return {LocalCopyOfBank2(), 0, "ld.local."};
  if (const Memory* memory = cubin_.Bank(bank); memory != nullptr) {
    const auto index = static_cast<std::uint32_t>(memory - cubin_.memories.data());
    return {PrepareOnce(MemoryName(index), Width::k64, "mov.u64 ?, " + MemoryName(index))};
  }
  Unsupported("with constant bank " + std::to_string(bank) + ", which is empty");
  return {Number(0)};
}

// Copies the kernel's branch tables, which are short, to local memory, in every thread.
Value Emitter::LocalCopyOfBank2() {
  const auto found = prepared_.find("bank 2");
  if (found != prepared_.end()) return found->second;
  const std::size_t words = kernel_.bank2.size() / 4;
  Declare(".local .align 8 .b8 $bank2[" + std::to_string(words * 4 + 8) + "];\n");
  const Value address = Prepare(Width::k64, "mov.u64 ?, $bank2", {});
  for (std::size_t i = 0; i < words; ++i) {
    Statement store;
    store.format = "st.local.b32 [$bank2+" + std::to_string(i * 4) + "], ?";
    store.values = {ImmediateConstant(static_cast<std::uint32_t>(i * 4), Width::k32)};
    prologue_.push_back(std::move(store));
  }
  return prepared_["bank 2"] = address;
}

void Emitter::Declare(const std::string& declaration) {
  if (declarations_.find(declaration) == std::string::npos) declarations_ += declaration;
}

void Emitter::UseShared() { PrepareOnce("shared", Width::k64, "mov.u64 ?, $shared"); }

}  // namespace torpor::sass
