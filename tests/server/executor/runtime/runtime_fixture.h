#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/module/module_store.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/command_memory.h"
#include "server/executor/runtime/completion_marks.h"
#include "server/executor/runtime/downloads.h"
#include "server/executor/runtime/module_ownership.h"
#include "server/executor/runtime/stream_set.h"
#include "tests/server/executor/session_memory/session_memory_fixture.h"

namespace torpor::executor {

// What handlers of the runtime's calls are made of, on the fake driver.
class RuntimeTest : public testing::Test {
 protected:
  explicit RuntimeTest(AddressMode mode = AddressMode::kMap) : s_(mode) {}
  ~RuntimeTest() override { std::filesystem::remove_all(folder_); }

  static std::string NewFolder() {
    std::string pattern = testing::TempDir() + "runtime.XXXXXX";
    return mkdtemp(pattern.data());
  }

  // Stores a fatbin of which the fake driver sees the header only.
  Sha256Digest StoreFatbin() {
    std::vector<std::uint8_t> bytes(16);
    const std::uint32_t magic = 0xBA55ED50;
    const std::uint16_t header_bytes = 16;
    std::memcpy(bytes.data(), &magic, sizeof magic);
    std::memcpy(bytes.data() + 6, &header_bytes, sizeof header_bytes);
    const Sha256Digest digest = Sha256(bytes.data(), bytes.size());
    EXPECT_TRUE(library_.Store(digest, kTenant, bytes).ok());
    return digest;
  }
  // Has the session load that module as 1, and create kernel 2, the fake's "record".
  void LoadKernel(const std::vector<std::string>& variables = {}) {
    ASSERT_TRUE(modules_.Load(1, StoreFatbin(), variables, false, nullptr).ok());
    ASSERT_TRUE(modules_.CreateKernel(2, 1, "record").ok());
  }
  std::uint64_t base() const { return s_.base(); }
  DeviceImage& image() { return s_.memory->image(); }

  FakeSessionMemory s_;
  static constexpr const char* kTenant = "tenant";
  const std::string folder_ = NewFolder();
  ModuleStore store_{folder_};
  ModuleLibrary library_{*s_.device, store_};
  SessionModules modules_{*s_.device, library_, s_.memory->image(), kTenant};
  StreamSet streams_{*s_.device, &s_.memory->image().arrival()};
  const CommandMemory memory_{*s_.memory, modules_};
  CompletionMarks marks_{*s_.device, streams_, s_.memory->window()};
  Downloads downloads_{*s_.device, streams_, s_.memory->window()};
  ModuleOwnership ownership_{*s_.device, modules_, streams_, s_.memory->image()};
};

}  // namespace torpor::executor
