#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {

using Row = std::array<std::uint64_t, 3>;

// Runs a few instructions on many rows of numbers.
class RowTest : public KernelTest {
 protected:
  // What `body` leaves in %d, once for each row. It finds the row's numbers in %a, %b and %c, their
  // low 32 bits in %wa, %wb and %wc and their low 16 bits in %ha, %hb and %hc; %wd and %hd are
  // free.
  std::vector<std::uint64_t> Run(const std::string& body, const std::vector<Row>& rows) {
    LoadText(std::string(kPtxHeader) +
             ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
             ".reg .b64 %a, %b, %c, %d, %in, %out, %x; .reg .b32 %wa, %wb, %wc, %wd, %i;\n"
             ".reg .b16 %ha, %hb, %hc, %hd; .reg .pred %p, %q, %o; .reg .b32 %block;\n"
             "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n"
             "mov.u32 %i, %tid.x; mov.u32 %block, %ctaid.x; mad.lo.u32 %i, %block, 32, %i;\n"
             "mul.wide.u32 %x, %i, 24; add.u64 %in, %in, %x;\n"
             "mul.wide.u32 %x, %i, 8; add.u64 %out, %out, %x;\n"
             "ld.global.u64 %a, [%in]; ld.global.u64 %b, [%in+8]; ld.global.u64 %c, [%in+16];\n"
             "cvt.u32.u64 %wa, %a; cvt.u32.u64 %wb, %b; cvt.u32.u64 %wc, %c;\n"
             "cvt.u16.u64 %ha, %a; cvt.u16.u64 %hb, %b; cvt.u16.u64 %hc, %c;\n" +
             body + "\nst.global.u64 [%out], %d; ret;\n}\n");
    const auto blocks = static_cast<unsigned>((rows.size() + 31) / 32);
    DeviceArray<std::uint64_t> in(memory_, std::size_t{3} * 32 * blocks);
    DeviceArray<std::uint64_t> out(memory_, in.size() / 3);
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = i / 3 < rows.size() ? rows[i / 3][i % 3] : 0;
    MustRun("k", {blocks, 1, 1}, {32, 1, 1}, in.data(), out.data());
    return {out.data(), out.data() + rows.size()};
  }

  std::vector<std::uint64_t> Run16(const std::string& body, const std::vector<Row>& rows) {
    return Run(body + " cvt.u64.u16 %d, %hd;", rows);
  }
  std::vector<std::uint64_t> Run32(const std::string& body, const std::vector<Row>& rows) {
    return Run(body + " cvt.u64.u32 %d, %wd;", rows);
  }
};

}  // namespace torpor::emulator
