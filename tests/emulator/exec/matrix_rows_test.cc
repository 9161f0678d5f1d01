// ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16 bits.
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

constexpr unsigned kMatrices = 4;

class MatrixRowsTest : public KernelTest {
 protected:
  // A warp whose shared array `data` holds the input's four matrices row by row; %row is the
  // address of the row that the lane gives, which `rotation` moves on. What `body` leaves in %r0
  // to %r3 is returned, register after register.
  std::vector<std::uint16_t> RunWarp(const std::string& body, unsigned rotation) {
    LoadText(std::string(kPtxHeader) +
             ".shared .align 16 .b8 data[512];\n"
             ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
             ".reg .b32 %r<4>, %t, %row, %at, %word; .reg .b64 %in, %out, %x;\n"
             "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;\n"
             "mul.wide.u32 %x, %t, 4; add.u64 %in, %in, %x; add.u64 %out, %out, %x;\n"
             "mov.u32 %row, data; shl.b32 %at, %t, 2; add.u32 %at, %at, %row;\n"
             "ld.global.u32 %word, [%in]; st.shared.u32 [%at], %word;\n"
             "ld.global.u32 %word, [%in+128]; st.shared.u32 [%at+128], %word;\n"
             "ld.global.u32 %word, [%in+256]; st.shared.u32 [%at+256], %word;\n"
             "ld.global.u32 %word, [%in+384]; st.shared.u32 [%at+384], %word;\n"
             "bar.warp.sync -1; add.u32 %word, %t, " +
             std::to_string(rotation) +
             "; and.b32 %word, %word, 31; shl.b32 %word, %word, 4; add.u32 %row, %row, %word;\n"
             "mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;\n" +
             body +
             "\nst.global.u32 [%out], %r0; st.global.u32 [%out+128], %r1;\n"
             "st.global.u32 [%out+256], %r2; st.global.u32 [%out+384], %r3;\nret;\n}\n");
    DeviceArray<std::uint16_t> in(memory_, std::size_t{64} * kMatrices);
    DeviceArray<std::uint16_t> out(memory_, in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i + 1);
    MustRun("k", {1, 1, 1}, {32, 1, 1}, in.data(), out.data());
    return {out.data(), out.data() + out.size()};
  }

  // Element (row, column) of what lane and register hold, given the rows' numbers.
  static std::uint16_t Number(unsigned row, unsigned column) {
    return static_cast<std::uint16_t>(row * 8 + column + 1);
  }
};

TEST_F(MatrixRowsTest, LoadsRowsThatLanesPointTo) {
  for (const unsigned count : {1, 2, 4}) {
    const std::string registers = count == 1   ? "{%r0}"
                                  : count == 2 ? "{%r0, %r1}"
                                               : "{%r0, %r1, %r2, %r3}";
    for (const bool transposed : {false, true}) {
      const auto out =
          RunWarp("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                      (transposed ? ".trans" : "") + ".shared.b16 " + registers + ", [%row];",
                  3);
      for (unsigned matrix = 0; matrix < kMatrices; ++matrix) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (unsigned half = 0; half < 2; ++half) {
            unsigned row = lane / 4;
            unsigned column = lane % 4 * 2 + half;
            if (transposed) std::swap(row, column);
            const unsigned given = (matrix * 8 + row + 3) % 32;
            const std::uint16_t expected = matrix < count ? Number(given, column) : 0;
            ASSERT_EQ(out[matrix * 64 + lane * 2 + half], expected)
                << count << " " << transposed << " " << matrix << " " << lane;
          }
        }
      }
    }
  }
}

TEST_F(MatrixRowsTest, StoresWhatItHasLoaded) {
  for (const char* transposed : {"", ".trans"}) {
    const std::string kind =
        std::string("matrix.sync.aligned.m8n8.x4") + transposed + ".shared.b16";
    std::string body = "ld" + kind + " {%r0, %r1, %r2, %r3}, [%row]; bar.warp.sync -1;\nst";
    body += kind;
    body +=
        " [%row], {%r1, %r0, %r3, %r2}; bar.warp.sync -1;\n"
        "ld.shared.u32 %r0, [%at]; ld.shared.u32 %r1, [%at+128];\n"
        "ld.shared.u32 %r2, [%at+256]; ld.shared.u32 %r3, [%at+384];";
    const auto out = RunWarp(body, 0);
    // Matrices 0 and 1, and 2 and 3, have changed places.
    for (unsigned i = 0; i < 64 * kMatrices; ++i) ASSERT_EQ(out[i], (i ^ 64) + 1) << i;
  }
}

TEST_F(MatrixRowsTest, TransposesARegister) {
  const auto out =
      RunWarp("ld.shared.u32 %r1, [%at]; movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", 0);
  for (unsigned row = 0; row < 8; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      ASSERT_EQ(out[row * 8 + column], Number(column, row));
    }
  }
}

TEST_F(MatrixRowsTest, RowsLieOnSixteenBytes) {
  LoadText(std::string(kPtxHeader) +
           ".shared .align 16 .b8 data[512];\n.visible .entry k()\n{\n.reg .b32 %r<2>;\n"
           "mov.u32 %r0, data; add.u32 %r0, %r0, 4;\n"
           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0];\nst.shared.u32 [data], %r1;\n"
           "ret;\n}\n");
  MustFail(ExecError::kMisalignedAddress, "k", {32, 1, 1});
}

}  // namespace
}  // namespace torpor::emulator
