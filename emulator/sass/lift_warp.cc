// Properties of a thread, exchange between lanes of a warp, and barriers.
//
// An instruction acts for the lanes that execute it together. PTX before .sync had the same
// meaning, and the emulator keeps it: no mask is needed for lanes that machine code has brought
// together.
#include <array>
#include <string>
#include <string_view>

#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// A special register of the machine and its name in PTX.
struct Special {
  std::uint32_t number;
  std::string_view name;
};

constexpr std::uint32_t kVirtualId = 0x03;  // the number of the warp from bit 8 on
constexpr std::uint32_t kClock = 0x50;
constexpr std::uint32_t kGlobalTimer = 0x52;
constexpr std::uint32_t kZeroNumber = 0xff;
constexpr Special kSpecials[] = {
    {0x00, "%laneid"},          {0x21, "%tid.x"},          {0x22, "%tid.y"},
    {0x23, "%tid.z"},           {0x25, "%ctaid.x"},        {0x26, "%ctaid.y"},
    {0x27, "%ctaid.z"},         {0x38, "%lanemask_eq"},    {0x39, "%lanemask_lt"},
    {0x32, "%total_smem_size"}, {0x3a, "%lanemask_le"},    {0x3b, "%lanemask_gt"},
    {0x3c, "%lanemask_ge"},     {0x43, "%smid"},           {kClock, "%clock"},
    {0x51, "%clock_hi"},        {0x52, "%globaltimer_lo"}, {0x53, "%globaltimer_hi"}};

// Moves a special register to `target`. Some registers need a computation in PTX.
void WriteSpecial(Emitter& to, const MachineInstruction& instruction, const Register& target) {
  const auto number = static_cast<std::uint32_t>(instruction.Bits(72, 8));
  if (number == kZeroNumber) return to.Move(target, Emitter::Number(0));
  if (number == kVirtualId) {
    const Value warp = to.Compute(Width::k32, "mov.u32 ?, %warpid", {});
    return to.Emit("shl.b32 ?, ?, 8", {to.Write(target), warp});
  }
  for (const Special& special : kSpecials) {
    if (special.number != number) continue;
    return to.Emit("mov.u32 ?, " + std::string(special.name), {to.Write(target)});
  }
  to.Unsupported("of special register " + std::to_string(number));
}

// The operands of a barrier: number and, if given, the number of threads.
struct Barrier {
  std::string text;
  std::vector<Value> values;
};

// Reads the operands of a barrier, which the form places in registers or immediates.
Barrier BarrierOf(Emitter& to, const MachineInstruction& instruction) {
  const Value number = Emitter::Number(static_cast<std::int64_t>(instruction.Bits(54, 4)));
  const Value count = Emitter::Number(static_cast<std::int64_t>(instruction.Bits(42, 12)));
  const Register reg = instruction.ThreadRegisterAt(32);
  switch (instruction.form()) {
    case 1: {  // both in one register
      const Value both = to.Read(reg);
      return {" ?, ?",
              {to.Compute(Width::k32, "and.b32 ?, ?, 15", {both}),
               to.Compute(Width::k32, "bfe.u32 ?, ?, 16, 12", {both})}};
    }
    case 2:
      if (instruction.Bits(42, 12) == 0) return {" ?", {to.Read(reg)}};
      return {" ?, ?", {to.Read(reg), count}};
    case 4:
      return {" ?, ?", {number, to.Read(reg)}};
    default:
      if (instruction.Bits(42, 12) == 0) return {" ?", {number}};
      return {" ?, ?", {number, count}};
  }
}

// The result that BAR.RED leaves for B2R.RESULT.
constexpr std::string_view kBarrierResult = "%barrierresult";

// A barrier that reduces a predicate over its threads; B2R reads the result later.
void Reduce(Emitter& to, const MachineInstruction& instruction, Barrier barrier) {
  constexpr std::array<std::string_view, 4> kOperators = {"popc.u32", "and.pred", "or.pred", ""};
  const std::string operation(kOperators[instruction.Bits(74, 2)]);
  if (operation.empty()) return to.Unsupported("of a kind that is not known");
  to.Declare(".reg .b32 " + std::string(kBarrierResult) + ";\n");
  const bool counts = operation == "popc.u32";
  const Value result = to.Temporary(counts ? Width::k32 : Width::kPredicate);
  barrier.values.insert(barrier.values.begin(), result);
  barrier.values.push_back(to.Read(instruction.PredicateSourceAt(87, 90)));
  to.Emit("bar.red." + operation + " ?," + barrier.text + ", ?", std::move(barrier.values));
  const std::string target(kBarrierResult);
  to.Emit(counts ? "mov.b32 " + target + ", ?" : "selp.b32 " + target + ", -1, 0, ?", {result});
}

}  // namespace

void LiftS2r(Emitter& to, const MachineInstruction& instruction) {
  WriteSpecial(to, instruction, instruction.destination());
}

void LiftS2ur(Emitter& to, const MachineInstruction& instruction) {
  WriteSpecial(to, instruction, instruction.UniformRegisterAt(16));
}

// Reads special registers of 64 bits, clocks for example, and zeroes.
void LiftCs2r(Emitter& to, const MachineInstruction& instruction) {
  const Register target = instruction.destination();
  if (!instruction.Bit(80)) return WriteSpecial(to, instruction, target);
  switch (instruction.Bits(72, 8)) {
    case kZeroNumber:
      return to.Emit("mov.b64 ?, ?", {to.WritePair(target), Emitter::Number(0)});
    case kClock:
      return to.Emit("mov.u64 ?, %clock64", {to.WritePair(target)});
    case kGlobalTimer:
      return to.Emit("mov.u64 ?, %globaltimer", {to.WritePair(target)});
    default:
      to.Unsupported("of 64 bits of special register " + std::to_string(instruction.Bits(72, 8)));
  }
}

// Lanes that execute the instruction together must agree on the value.
void LiftR2ur(Emitter& to, const MachineInstruction& instruction) {
  to.Move(instruction.UniformRegisterAt(16), to.Read(instruction.ThreadRegisterAt(24)));
}

// Votes on a predicate, with a predicate and a ballot as results.
void LiftVote(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::array<std::string_view, 4> kKinds = {"all", "any", "uni", ""};
  const Register ballot = instruction.destination();
  const Register result = instruction.PredicateAt(81);
  const PredicateOperand source = instruction.PredicateSourceAt(87, 90);
  const std::string_view kind = kKinds[instruction.Bits(72, 2)];
  if (kind.empty()) return to.Unsupported("of a kind that is not known");
  const Value predicate = to.Read(source);
  if (!ballot.is_fixed()) {
    if (source.always()) {
      to.Emit("activemask.b32 ?", {to.Write(ballot)});
    } else {
      to.Emit("vote.ballot.b32 ?, ?, -1", {to.Write(ballot), predicate});
    }
  }
  if (result.is_fixed()) return;
  to.Emit("vote." + std::string(kind) + ".pred ?, ?, -1", {to.Write(result), predicate});
}

// Lane and bounds are in registers or immediates, by the form.
void LiftShfl(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::array<std::string_view, 4> kKinds = {"idx", "up", "down", "bfly"};
  const bool lane_is_register = instruction.form() == 1 || instruction.form() == 2;
  const bool clamp_is_register = instruction.form() == 1 || instruction.form() == 4;
  const Value lane = lane_is_register
                         ? to.Read(instruction.ThreadRegisterAt(32))
                         : Emitter::Number(static_cast<std::int64_t>(instruction.Bits(53, 5)));
  const Value clamp = clamp_is_register
                          ? to.Read(instruction.ThreadRegisterAt(64))
                          : Emitter::Number(static_cast<std::int64_t>(instruction.Bits(40, 13)));
  const std::string kind = "shfl." + std::string(kKinds[instruction.Bits(58, 2)]) + ".b32 ";
  const Value source = to.Read(instruction.ThreadRegisterAt(24));
  const Register valid = instruction.PredicateAt(81);
  const Value result = to.Write(instruction.destination());
  if (valid.is_fixed()) return to.Emit(kind + "?, ?, ?, ?", {result, source, lane, clamp});
  to.Emit(kind + "?|?, ?, ?, ?", {result, to.Write(valid), source, lane, clamp});
}

// The lanes with an equal value; .ALL also tells whether all lanes agree.
void LiftMatch(Emitter& to, const MachineInstruction& instruction) {
  const bool is_any = instruction.Bit(79);
  const bool is_pair = instruction.Bit(73);
  const Register source = instruction.ThreadRegisterAt(24);
  const Value value = is_pair ? to.ReadPair(source) : to.Read(source);
  const std::string type = is_pair ? ".b64 " : ".b32 ";
  const Value result = to.Write(instruction.destination());
  const Register same = instruction.PredicateAt(81);
  if (is_any || same.is_fixed()) {
    return to.Emit((is_any ? "match.any" : "match.all") + type + "?, ?, -1", {result, value});
  }
  to.Emit("match.all" + type + "?|?, ?, -1", {result, to.Write(same), value});
}

void LiftWarpsync(Emitter& to, const MachineInstruction& instruction) {
  if (!instruction.PredicateSourceAt(87, 90).always()) {
    return to.Unsupported("under a predicate besides its guard");
  }
  to.Emit("bar.warp.sync ?", {to.Read(instruction.b())});
}

void LiftBar(Emitter& to, const MachineInstruction& instruction) {
  Barrier barrier = BarrierOf(to, instruction);
  switch (instruction.Bits(77, 2)) {
    case 0:
      return to.Emit("bar.sync" + barrier.text, std::move(barrier.values));
    case 1:
      return to.Emit("bar.arrive" + barrier.text, std::move(barrier.values));
    case 2:
      return Reduce(to, instruction, std::move(barrier));
    default:
      to.Unsupported("of a kind that is not known");
  }
}

// Reads the result of the last BAR.RED.
void LiftB2r(Emitter& to, const MachineInstruction& instruction) {
  if (instruction.Bits(78, 2) != 1) return to.Unsupported("of a kind that is not known");
  to.Declare(".reg .b32 " + std::string(kBarrierResult) + ";\n");
  const Register predicate = instruction.PredicateAt(81);
  to.Move(instruction.destination(), Emitter::Text(kBarrierResult));
  if (predicate.is_fixed()) return;
  to.Emit("setp.ne.u32 ?, " + std::string(kBarrierResult) + ", 0", {to.Write(predicate)});
}

void LiftNanosleep(Emitter& to, const MachineInstruction& instruction) {
  to.Emit("nanosleep.u32 ?", {to.Read(instruction.b())});
}

}  // namespace torpor::sass
