#include "emulator/ptx/instruction.h"

#include <optional>
#include <string>
#include <unordered_map>

#include "emulator/ptx/matrix.h"

namespace torpor::ptx {
namespace {

template <typename T>
using Table = std::unordered_map<std::string_view, T>;

const Table<Opcode>& Opcodes() {
  static const Table<Opcode> table = {
      {"abs", Opcode::kAbs},
      {"activemask", Opcode::kActivemask},
      {"add", Opcode::kAdd},
      {"addc", Opcode::kAddc},
      {"alloca", Opcode::kAlloca},
      {"and", Opcode::kAnd},
      {"applypriority", Opcode::kApplypriority},
      {"atom", Opcode::kAtom},
      {"bar", Opcode::kBar},
      {"barrier", Opcode::kBarrier},
      {"bfe", Opcode::kBfe},
      {"bfi", Opcode::kBfi},
      {"bfind", Opcode::kBfind},
      {"bmsk", Opcode::kBmsk},
      {"bra", Opcode::kBra},
      {"brev", Opcode::kBrev},
      {"brkpt", Opcode::kBrkpt},
      {"brx", Opcode::kBrx},
      {"call", Opcode::kCall},
      {"clz", Opcode::kClz},
      {"cnot", Opcode::kCnot},
      {"copysign", Opcode::kCopysign},
      {"cp", Opcode::kCp},
      {"cos", Opcode::kCos},
      {"createpolicy", Opcode::kCreatepolicy},
      {"cvt", Opcode::kCvt},
      {"cvta", Opcode::kCvta},
      {"discard", Opcode::kDiscard},
      {"div", Opcode::kDiv},
      {"dp2a", Opcode::kDp2a},
      {"dp4a", Opcode::kDp4a},
      {"elect", Opcode::kElect},
      {"ex2", Opcode::kEx2},
      {"exit", Opcode::kExit},
      {"fence", Opcode::kFence},
      {"fma", Opcode::kFma},
      {"fns", Opcode::kFns},
      {"getctarank", Opcode::kGetctarank},
      {"griddepcontrol", Opcode::kGriddepcontrol},
      {"isspacep", Opcode::kIsspacep},
      {"ld", Opcode::kLd},
      {"ldmatrix", Opcode::kLdmatrix},
      {"ldu", Opcode::kLdu},
      {"lg2", Opcode::kLg2},
      {"lop3", Opcode::kLop3},
      {"mad", Opcode::kMad},
      {"mad24", Opcode::kMad24},
      {"madc", Opcode::kMadc},
      {"mapa", Opcode::kMapa},
      {"match", Opcode::kMatch},
      {"max", Opcode::kMax},
      {"mbarrier", Opcode::kMbarrier},
      {"membar", Opcode::kMembar},
      {"min", Opcode::kMin},
      {"mma", Opcode::kMma},
      {"mov", Opcode::kMov},
      {"movmatrix", Opcode::kMovmatrix},
      {"mul", Opcode::kMul},
      {"mul24", Opcode::kMul24},
      {"nanosleep", Opcode::kNanosleep},
      {"neg", Opcode::kNeg},
      {"not", Opcode::kNot},
      {"or", Opcode::kOr},
      {"pmevent", Opcode::kPmevent},
      {"popc", Opcode::kPopc},
      {"prefetch", Opcode::kPrefetch},
      {"prefetchu", Opcode::kPrefetchu},
      {"prmt", Opcode::kPrmt},
      {"rcp", Opcode::kRcp},
      {"red", Opcode::kRed},
      {"redux", Opcode::kRedux},
      {"rem", Opcode::kRem},
      {"ret", Opcode::kRet},
      {"rsqrt", Opcode::kRsqrt},
      {"sad", Opcode::kSad},
      {"selp", Opcode::kSelp},
      {"set", Opcode::kSet},
      {"setmaxnreg", Opcode::kSetmaxnreg},
      {"setp", Opcode::kSetp},
      {"shf", Opcode::kShf},
      {"shfl", Opcode::kShfl},
      {"shl", Opcode::kShl},
      {"shr", Opcode::kShr},
      {"sin", Opcode::kSin},
      {"slct", Opcode::kSlct},
      {"sqrt", Opcode::kSqrt},
      {"st", Opcode::kSt},
      {"stackrestore", Opcode::kStackrestore},
      {"stacksave", Opcode::kStacksave},
      {"stmatrix", Opcode::kStmatrix},
      {"sub", Opcode::kSub},
      {"subc", Opcode::kSubc},
      {"suld", Opcode::kSuld},
      {"suq", Opcode::kSuq},
      {"sured", Opcode::kSured},
      {"sust", Opcode::kSust},
      {"szext", Opcode::kSzext},
      {"tanh", Opcode::kTanh},
      {"testp", Opcode::kTestp},
      {"tex", Opcode::kTex},
      {"tld4", Opcode::kTld4},
      {"trap", Opcode::kTrap},
      {"txq", Opcode::kTxq},
      {"vabsdiff2", Opcode::kVabsdiff2},
      {"vabsdiff4", Opcode::kVabsdiff4},
      {"vadd2", Opcode::kVadd2},
      {"vadd4", Opcode::kVadd4},
      {"vavrg2", Opcode::kVavrg2},
      {"vavrg4", Opcode::kVavrg4},
      {"vmax2", Opcode::kVmax2},
      {"vmax4", Opcode::kVmax4},
      {"vmin2", Opcode::kVmin2},
      {"vmin4", Opcode::kVmin4},
      {"vote", Opcode::kVote},
      {"vset2", Opcode::kVset2},
      {"vset4", Opcode::kVset4},
      {"vsub2", Opcode::kVsub2},
      {"vsub4", Opcode::kVsub4},
      {"wmma", Opcode::kWmma},
      {"xor", Opcode::kXor},
  };
  return table;
}

const Table<Modifier>& Modifiers() {
  static const Table<Modifier> table = {
      {"rn", Modifier::kRn},
      {"rz", Modifier::kRz},
      {"rm", Modifier::kRm},
      {"rp", Modifier::kRp},
      {"rna", Modifier::kRna},
      {"rni", Modifier::kRni},
      {"rzi", Modifier::kRzi},
      {"rmi", Modifier::kRmi},
      {"rpi", Modifier::kRpi},
      {"ftz", Modifier::kFtz},
      {"sat", Modifier::kSat},
      {"satfinite", Modifier::kSatfinite},
      {"approx", Modifier::kApprox},
      {"full", Modifier::kFull},
      {"relu", Modifier::kRelu},
      {"xorsign", Modifier::kXorsign},
      {"nan", Modifier::kNan},
      {"NaN", Modifier::kNan},
      {"abs", Modifier::kAbs},
      {"lo", Modifier::kLo},
      {"hi", Modifier::kHi},
      {"wide", Modifier::kWide},
      {"ls", Modifier::kLs},
      {"hs", Modifier::kHs},
      {"cc", Modifier::kCc},
      {"eq", Modifier::kEq},
      {"ne", Modifier::kNe},
      {"lt", Modifier::kLt},
      {"le", Modifier::kLe},
      {"gt", Modifier::kGt},
      {"ge", Modifier::kGe},
      {"equ", Modifier::kEqu},
      {"neu", Modifier::kNeu},
      {"ltu", Modifier::kLtu},
      {"leu", Modifier::kLeu},
      {"gtu", Modifier::kGtu},
      {"geu", Modifier::kGeu},
      {"num", Modifier::kNum},
      {"and", Modifier::kAnd},
      {"or", Modifier::kOr},
      {"xor", Modifier::kXor},
      {"add", Modifier::kAdd},
      {"inc", Modifier::kInc},
      {"dec", Modifier::kDec},
      {"min", Modifier::kMin},
      {"max", Modifier::kMax},
      {"exch", Modifier::kExch},
      {"cas", Modifier::kCas},
      {"popc", Modifier::kPopc},
      {"all", Modifier::kAll},
      {"any", Modifier::kAny},
      {"uni", Modifier::kUni},
      {"ballot", Modifier::kBallot},
      {"up", Modifier::kUp},
      {"down", Modifier::kDown},
      {"bfly", Modifier::kBfly},
      {"idx", Modifier::kIdx},
      {"sync", Modifier::kSync},
      {"arrive", Modifier::kArrive},
      {"red", Modifier::kRed},
      {"warp", Modifier::kWarp},
      {"aligned", Modifier::kAligned},
      {"global", Modifier::kGlobal},
      {"shared", Modifier::kShared},
      {"shared::cta", Modifier::kShared},
      {"shared::cluster", Modifier::kSharedCluster},
      {"const", Modifier::kConst},
      {"local", Modifier::kLocal},
      {"param", Modifier::kParam},
      {"param::entry", Modifier::kParam},
      {"param::func", Modifier::kParam},
      {"to", Modifier::kTo},
      {"volatile", Modifier::kVolatile},
      {"relaxed", Modifier::kRelaxed},
      {"acquire", Modifier::kAcquire},
      {"release", Modifier::kRelease},
      {"acq_rel", Modifier::kAcqRel},
      {"sc", Modifier::kSc},
      {"mmio", Modifier::kMmio},
      {"weak", Modifier::kWeak},
      {"cta", Modifier::kCta},
      {"cluster", Modifier::kCluster},
      {"gpu", Modifier::kGpu},
      {"sys", Modifier::kSys},
      {"gl", Modifier::kGl},
      {"nc", Modifier::kNc},
      {"async", Modifier::kAsync},
      {"mbarrier", Modifier::kMbarrier},
      {"init", Modifier::kInit},
      {"inval", Modifier::kInval},
      {"arrive_drop", Modifier::kArriveDrop},
      {"expect_tx", Modifier::kExpectTx},
      {"complete_tx", Modifier::kCompleteTx},
      {"test_wait", Modifier::kTestWait},
      {"try_wait", Modifier::kTryWait},
      {"pending_count", Modifier::kPendingCount},
      {"noComplete", Modifier::kNoComplete},
      {"noinc", Modifier::kNoinc},
      {"parity", Modifier::kParity},
      {"bulk", Modifier::kBulk},
      {"bulk_group", Modifier::kBulkGroup},
      {"mbarrier::complete_tx::bytes", Modifier::kBytes},
      {"prefetch", Modifier::kPrefetch},
      {"wait", Modifier::kWait},
      {"m8n8", Modifier::kM8n8},
      {"trans", Modifier::kTrans},
      {"x1", Modifier::kX1},
      {"x2", Modifier::kX2},
      {"x4", Modifier::kX4},
      {"commit_group", Modifier::kCommitGroup},
      {"wait_group", Modifier::kWaitGroup},
      {"wait_all", Modifier::kWaitAll},
      {"v2", Modifier::kV2},
      {"v4", Modifier::kV4},
      {"v8", Modifier::kV8},
      {"noftz", Modifier::kNoftz},
      {"l", Modifier::kL},
      {"r", Modifier::kR},
      {"wrap", Modifier::kWrap},
      {"clamp", Modifier::kClamp},
      {"shiftamt", Modifier::kShiftamt},
      {"f4e", Modifier::kF4e},
      {"b4e", Modifier::kB4e},
      {"rc8", Modifier::kRc8},
      {"ecl", Modifier::kEcl},
      {"ecr", Modifier::kEcr},
      {"rc16", Modifier::kRc16},
      {"finite", Modifier::kFinite},
      {"infinite", Modifier::kInfinite},
      {"number", Modifier::kNumber},
      {"notanumber", Modifier::kNotanumber},
      {"normal", Modifier::kNormal},
      {"subnormal", Modifier::kSubnormal},
      {"1d", Modifier::k1d},
      {"2d", Modifier::k2d},
      {"3d", Modifier::k3d},
      {"a1d", Modifier::kA1d},
      {"a2d", Modifier::kA2d},
      {"cube", Modifier::kCube},
      {"acube", Modifier::kAcube},
      {"level", Modifier::kLevel},
      {"grad", Modifier::kGrad},
      {"g", Modifier::kG},
      {"b", Modifier::kB},
      {"a", Modifier::kA},
      {"p", Modifier::kP},
      {"trap", Modifier::kTrap},
      {"zero", Modifier::kZero},
      {"width", Modifier::kWidth},
      {"height", Modifier::kHeight},
      {"depth", Modifier::kDepth},
      {"array_size", Modifier::kArraySize},
      {"num_mipmap_levels", Modifier::kNumMipmapLevels},
      {"normalized_coords", Modifier::kNormalizedCoords},
      // Cache hints have no visible effect here.
      {"ca", Modifier::kCacheHint},
      {"cg", Modifier::kCacheHint},
      {"cs", Modifier::kCacheHint},
      {"lu", Modifier::kCacheHint},
      {"cv", Modifier::kVolatile},
      {"wb", Modifier::kCacheHint},
      {"wt", Modifier::kVolatile},
      {"L1", Modifier::kCacheHint},
      {"L2", Modifier::kCacheHint},
      {"L1::evict_normal", Modifier::kCacheHint},
      {"L1::evict_unchanged", Modifier::kCacheHint},
      {"L1::evict_first", Modifier::kCacheHint},
      {"L1::evict_last", Modifier::kCacheHint},
      {"L1::no_allocate", Modifier::kCacheHint},
      {"L2::64B", Modifier::kCacheHint},
      {"L2::128B", Modifier::kCacheHint},
      {"L2::256B", Modifier::kCacheHint},
      {"L2::evict_last", Modifier::kCacheHint},
      {"L2::evict_first", Modifier::kCacheHint},
      {"L2::evict_normal", Modifier::kCacheHint},
      {"L2::cache_hint", Modifier::kCachePolicy},
      {"L2::evict_unchanged", Modifier::kCacheHint},
      {"fractional", Modifier::kCacheHint},
      {"tensormap::generic", Modifier::kCacheHint},
      {"launch_dependents", Modifier::kCacheHint},
      {"read", Modifier::kCacheHint},
      // All memory of a block looks the same through every proxy.
      {"proxy", Modifier::kCacheHint},
      {"alias", Modifier::kCacheHint},
      {"async::generic", Modifier::kCacheHint},
      {"mbarrier_init", Modifier::kCacheHint},
      {"sync_restrict::shared::cta", Modifier::kCacheHint},
      {"sync_restrict::shared::cluster", Modifier::kCacheHint},
  };
  return table;
}

// Takes the next dotted word; "::" and the following name belong to the word.
std::string_view NextWord(std::string_view& rest) {
  const std::size_t end = rest.find('.');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return word;
}

// Some types are only for some instructions.
bool MayHaveType(Opcode opcode, Type type) {
  if (IsIntegerPair(type)) {
    return opcode == Opcode::kAdd || opcode == Opcode::kMin || opcode == Opcode::kMax;
  }
  return IsFundamental(type) || opcode == Opcode::kCvt;
}

// Decodes one dotted word. Returns false for unknown words, and for types that the opcode cannot
// have.
bool DecodeWord(std::string_view word, Instruction& instruction) {
  if (const auto type = ParseType(word)) {
    instruction.types.push_back(*type);
    return MayHaveType(instruction.opcode, *type);
  }
  const auto found = Modifiers().find(word);
  if (found == Modifiers().end()) return false;
  const auto set = [&](Modifier modifier) {
    instruction.modifiers.set(static_cast<std::size_t>(modifier));
  };
  set(found->second);
  if (found->second == Modifier::kSharedCluster) set(Modifier::kShared);
  return true;
}

// The code generator decodes the rest again: storing the result in every instruction would cost
// memory.
void DecodeMatrixSpelling(Instruction& instruction) {
  const auto matrix = DecodeMatrix(instruction.spelling);
  if (!matrix) {
    instruction.opcode = Opcode::kUnknown;
    return;
  }
  instruction.types.push_back(matrix->d);
  const auto set = [&](Modifier modifier) {
    instruction.modifiers.set(static_cast<std::size_t>(modifier));
  };
  if (instruction.spelling.find(".shared") != std::string_view::npos) set(Modifier::kShared);
  if (instruction.spelling.find(".global") != std::string_view::npos) set(Modifier::kGlobal);
}

}  // namespace

Space Instruction::space() const {
  if (Has(Modifier::kGlobal)) return Space::kGlobal;
  if (Has(Modifier::kShared)) return Space::kShared;
  if (Has(Modifier::kConst)) return Space::kConst;
  if (Has(Modifier::kLocal)) return Space::kLocal;
  if (Has(Modifier::kParam)) return Space::kParam;
  return Space::kGeneric;
}

unsigned Instruction::vector_width() const {
  if (Has(Modifier::kV2)) return 2;
  if (Has(Modifier::kV4)) return 4;
  if (Has(Modifier::kV8)) return 8;
  return 1;
}

bool Instruction::is_barrier() const {
  if (opcode == Opcode::kBarrier) return true;
  return opcode == Opcode::kBar && !Has(Modifier::kWarp);
}

bool Instruction::is_warp_barrier() const { return opcode == Opcode::kBar && Has(Modifier::kWarp); }

bool Instruction::is_synchronising() const {
  if (opcode == Opcode::kAtom) return true;
  if (opcode == Opcode::kMbarrier) return Has(Modifier::kTestWait) || Has(Modifier::kTryWait);
  return opcode == Opcode::kLd && is_ordered();
}

bool Instruction::is_ordered() const {
  return Has(Modifier::kVolatile) || Has(Modifier::kAcquire) || Has(Modifier::kRelease) ||
         Has(Modifier::kRelaxed) || Has(Modifier::kMmio);
}

bool Instruction::is_texture_or_surface_access() const {
  switch (opcode) {
    case Opcode::kTex:
    case Opcode::kTld4:
    case Opcode::kTxq:
    case Opcode::kSuld:
    case Opcode::kSuq:
    case Opcode::kSured:
    case Opcode::kSust:
      return true;
    default:
      return false;
  }
}

void DecodeSpelling(Instruction& instruction) {
  std::string_view rest = instruction.spelling;
  const auto found = Opcodes().find(NextWord(rest));
  instruction.opcode = found == Opcodes().end() ? Opcode::kUnknown : found->second;
  if (instruction.opcode == Opcode::kWmma || instruction.opcode == Opcode::kMma) {
    return DecodeMatrixSpelling(instruction);
  }
  while (!rest.empty() && instruction.opcode != Opcode::kUnknown) {
    if (!DecodeWord(NextWord(rest), instruction)) instruction.opcode = Opcode::kUnknown;
  }
}

}  // namespace torpor::ptx
