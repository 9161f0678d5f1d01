#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "emulator/exec/jit/object_cache.h"
#include "emulator/exec/runtime/arena.h"
#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class ProgramTest : public KernelTest {};

TEST_F(ProgramTest, UnknownInstructionsAreNamed) {
  LoadText(std::string(kPtxHeader) +
           ".entry good() { ret; }\n.entry bad() { .reg .b32 %r<2>;\n"
           "frobnicate.sync.u32 %r1, {%r0, 3}, [foo];\nret; }\n");
  EXPECT_TRUE(program_->Preload("good", {32, 1, 1}));
  const auto result = program_->Preload("bad", {32, 1, 1});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
  EXPECT_NE(result.failure().message.find("frobnicate.sync.u32"), std::string::npos);
  EXPECT_NE(result.failure().message.find("bad"), std::string::npos);
}

TEST_F(ProgramTest, MalformedPtxIsRejected) {
  for (const char* text : {"garbage", ".version 9.0\n.entry k( {", ".entry k() { bra nowhere; }",
                           ".entry k() { @%p1 ret; }"}) {
    const auto loaded = Program::Load(text, memory_, {});
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.failure().code, ExecError::kInvalidPtx);
  }
}

TEST_F(ProgramTest, AnEmptyUnitIsAUnit) {
  LoadText("");
  EXPECT_TRUE(program_->kernels().empty());
  EXPECT_TRUE(program_->variables().empty());
}

TEST_F(ProgramTest, ScopesOfInlineAssemblyHideNames) {
  LoadBody(
      "mov.u32 %r1, 5;\n{ .reg .u32 t; .reg .pred p; mov.u32 t, 3; LOOP: sub.u32 t, t, 1;\n"
      "add.u32 %r1, %r1, 10; setp.ne.u32 p, t, 0; @p bra LOOP; }\n"
      "{ .reg .u32 t; .reg .pred p; mov.u32 t, 2; LOOP: sub.u32 t, t, 1;\n"
      "add.u32 %r1, %r1, 100; setp.ne.u32 p, t, 0; @p bra LOOP; }");
  DeviceArray<int> out(memory_, 32);
  MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data());
  EXPECT_EQ(out[31], 235);
}

TEST_F(ProgramTest, IndexedBranchesDiverge) {
  LoadBody(
      "mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 3; mov.u32 %r1, 0;\n"
      "table: .branchtargets A, B, C, D;\nbrx.idx %r4, table;\n"
      "A: add.u32 %r1, %r1, 1; bra.uni E;\nB: add.u32 %r1, %r1, 20;\n"
      "C: add.u32 %r1, %r1, 300; bra.uni E;\nD: add.u32 %r1, %r1, 4000;\nE:");
  DeviceArray<int> out(memory_, 32);
  MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data());
  const int expected[] = {1, 320, 300, 4000};
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], expected[i % 4]);
}

TEST_F(ProgramTest, GuardsKeepTheOldValue) {
  LoadBody(
      "mov.u32 %r3, %tid.x; mov.u32 %r1, 7; setp.lt.u32 %p1|%p2, %r3, 10;\n"
      "@%p1 add.u32 %r1, %r1, %r3;\n@!%p1 mov.u32 %r1, 1000;\n"
      "setp.gt.and.u32 %p3, %r3, 20, %p2; @%p3 mov.b32 %r1, 0f3F800000;");
  DeviceArray<int> out(memory_, 32);
  MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 10 ? 7 + i : i <= 20 ? 1000 : 0x3f800000);
}

// So large that it is compiled without register allocation.
TEST_F(ProgramTest, KernelsOfThousandsOfInstructions) {
  constexpr int kRounds = 1500;
  std::string body = "mov.u32 %r1, %tid.x;\n";
  for (int i = 0; i < kRounds; ++i) {
    body +=
        "mad.lo.u32 %r1, %r1, 1664525, 1013904223; shr.u32 %r3, %r1, 13; xor.b32 %r1, %r1, %r3;\n"
        "setp.lt.s32 %p1, %r1, 0; @%p1 add.u32 %r1, %r1, 7;\n";
  }
  LoadBody(body);
  DeviceArray<std::uint32_t> out(memory_, 100);
  MustRun("k", {1, 1, 1}, {100, 1, 1}, out.data());
  for (std::uint32_t thread = 0; thread < out.size(); ++thread) {
    std::uint32_t x = thread;
    for (int i = 0; i < kRounds; ++i) {
      x = x * 1664525 + 1013904223;
      x ^= x >> 13;
      if (static_cast<std::int32_t>(x) < 0) x += 7;
    }
    EXPECT_EQ(out[thread], x) << thread;
  }
}

TEST_F(ProgramTest, LaunchesAreValidated) {
  LoadBody("mov.u32 %r1, 1;");
  DeviceArray<int> out(memory_, 32);
  LaunchConfig config;
  config.block = {1025, 1, 1};
  EXPECT_EQ(Launch("k", config, out.data()).failure().code, ExecError::kInvalidLaunch);
  config.block = {32, 1, 1};
  config.grid = {0, 1, 1};
  EXPECT_EQ(Launch("k", config, out.data()).failure().code, ExecError::kInvalidLaunch);
  config.grid = {1, 1, 1};
  config.dynamic_shared_bytes = 100 * kKiB;
  EXPECT_EQ(Launch("k", config, out.data()).failure().code, ExecError::kInvalidLaunch);
  config.dynamic_shared_bytes = 0;
  EXPECT_TRUE(Launch("k", config, out.data()));
  EXPECT_EQ(Launch("other", config, out.data()).failure().code, ExecError::kNotFound);
}

std::size_t AddressSpaceInUse() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// In a process that has launched nothing yet: the first launch makes the threads that help.
TEST_F(ProgramTest, AGridRunsWhereNoThreadCanBeMade) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [&] {
    LoadBody("mov.u32 %r1, 42;");
    DeviceArray<int> out(memory_, 32);
    ASSERT_TRUE(program_->Preload("k", {32, 1, 1}));
    Arena::Instance();
    const rlim_t enough = AddressSpaceInUse() + 4 * kMiB;  // but not for a thread's stack
    const rlimit limit = {enough, enough};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    MustRun("k", {4, 1, 1}, {32, 1, 1}, out.data());
    std::exit(out[0] == 42 ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

class CacheTest : public ProgramTest {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/torpor_object_cache_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    setenv("TORPOR_EMULATOR_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TORPOR_EMULATOR_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }

  std::vector<std::filesystem::path> Entries() const {
    std::vector<std::filesystem::path> entries;
    if (!std::filesystem::exists(folder_)) return entries;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      entries.push_back(entry.path());
    }
    return entries;
  }

  std::string folder_;
};

TEST_F(CacheTest, CodeIsKeptAndDamagedEntriesAreReplaced) {
  const auto run = [&] {
    LoadBody("mov.u32 %r1, 42;");
    DeviceArray<int> out(memory_, 32);
    MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data());
    EXPECT_EQ(out[0], 42);
  };
  run();
  ASSERT_EQ(Entries().size(), 1U);
  const auto path = Entries()[0];
  const auto written = std::filesystem::last_write_time(path);
  run();
  EXPECT_EQ(Entries().size(), 1U);
  EXPECT_EQ(std::filesystem::last_write_time(path), written);

  const auto size = std::filesystem::file_size(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << "damage";
  }
  run();
  std::filesystem::resize_file(path, 10);
  run();
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

TEST_F(CacheTest, PreloadingCompilesWhatTheLaunchRuns) {
  LoadBody("mov.u32 %r1, 42;");
  DeviceArray<int> out(memory_, 256);
  const Dim3 block = {16, 16, 1};
  ASSERT_TRUE(program_->Preload("k", block));
  ASSERT_EQ(Entries().size(), 1U);
  MustRun("k", {1, 1, 1}, block, out.data());
  EXPECT_EQ(Entries().size(), 1U);
  MustRun("k", {1, 1, 1}, {256, 1, 1}, out.data());
  EXPECT_EQ(Entries().size(), 2U);
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenOnlyCostsTime) {
  setenv("TORPOR_EMULATOR_CACHE_DIR", "/proc/no/such/folder", 1);
  LoadBody("mov.u32 %r1, 42;");
  EXPECT_TRUE(program_->Preload("k", {32, 1, 1}));
}

TEST(ObjectCacheTest, KeysDoNotMix) {
  const std::string folder = ::testing::TempDir() + "/torpor_keys_" + std::to_string(getpid());
  const ObjectCache cache(folder);
  EXPECT_FALSE(cache.Find("a"));
  cache.Insert("a", {'x', 'y'});
  EXPECT_EQ(cache.Find("a"), (std::vector<char>{'x', 'y'}));
  EXPECT_FALSE(cache.Find("b"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace torpor::emulator
