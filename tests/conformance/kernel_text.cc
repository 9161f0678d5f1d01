#include "tests/conformance/kernel_text.h"

namespace torpor::conformance {
namespace {

constexpr const char* kParameters = R"(
.visible .entry conformance(.param .u64 operands, .param .u64 results, .param .u64 scratch) {
  .reg .pred P, Q;
  .reg .b16 H<4>;
  .reg .b32 T<4>, LANE, THREAD, SS, WS, number;
  .reg .b64 X<4>, GG, GA, SA, LL, LA, operand, result, wide;
  .shared .align 128 .b8 thread_shared[8192];
  .shared .align 128 .b8 warp_shared[8192];
  .local .align 16 .b8 thread_local[64];
)";

constexpr const char* kAddresses = R"(
  mov.u32 THREAD, %tid.x;
  mov.u32 LANE, %laneid;
  mov.u32 number, %ctaid.x;
  mad.lo.u32 number, number, 128, THREAD;
  ld.param.u64 operand, [operands];
  cvta.to.global.u64 operand, operand;
  mad.wide.u32 operand, number, 24, operand;
  ld.param.u64 result, [results];
  cvta.to.global.u64 result, result;
  mad.wide.u32 result, number, 8, result;
  ld.param.u64 GA, [scratch];
  mad.wide.u32 GA, number, 64, GA;
  cvta.to.global.u64 GG, GA;
  mov.u32 SS, thread_shared;
  mad.lo.u32 SS, THREAD, 64, SS;
  cvt.u64.u32 wide, SS;
  cvta.shared.u64 SA, wide;
  mov.u64 LL, thread_local;
  cvta.local.u64 LA, LL;
  shr.u32 number, THREAD, 5;
  mov.u32 WS, warp_shared;
  mad.lo.u32 WS, number, 2048, WS;
)";

std::string Constants() {
  std::string text = ".const .align 16 .b8 K[64] = {";
  for (std::size_t i = 0; i < 64; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ConstantByte(i));
  return text + "};\n";
}

std::string Operand(char name, int bits, std::size_t index) {
  const std::string type = ".b" + std::to_string(bits);
  return std::string("  .reg ") + type + " " + name + ";\n  ld.global" + type + " " + name +
         ", [operand+" + std::to_string(8 * index) + "];\n";
}

}  // namespace

std::string KernelText(const PtxCase& ptx_case, const std::string& architecture) {
  std::string text = ".version 8.6\n.target " + architecture + "\n.address_size 64\n";
  text += Constants() + ptx_case.declarations + kParameters + kAddresses;
  for (std::size_t i = 0; i < kOperands; ++i) {
    if (ptx_case.operand_bits[i] != 0)
      text += Operand(static_cast<char>('A' + i), ptx_case.operand_bits[i], i);
  }
  const std::string result = ".b" + std::to_string(ptx_case.result_bits);
  return text + "  .reg " + result + " D;\n  " + ptx_case.text + "\n  st.global" + result +
         " [result], D;\n  ret;\n}\n";
}

}  // namespace torpor::conformance
