#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace torpor::sass {

// A file that the build has made; empty, and a failure of the test, if there is none.
inline std::string ReadTestCubin(const std::string& name) {
  const std::string path = TORPOR_TEST_CUBIN_DIR "/" + name + ".cubin";
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace torpor::sass
