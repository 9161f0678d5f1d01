// What the programs of this folder check themselves with. A failure says where and ends the
// program with status 1, or lets it go on and end so if CHECK_GOES_ON is set: to learn all of what
// a driver does otherwise. main ends with `return Pass();`.
#pragma once

#include <cuda_runtime.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

inline bool check_has_failed = false;

// The line of the check that began last: where a program was that a library crashes.
inline volatile int check_line = 0;

inline void TellCrash(int signal) {
  std::printf("FAIL: signal %d, in the check at line %d or behind it\n", signal, check_line);
  std::fflush(stdout);
  std::_Exit(128 + signal);
}

inline const bool check_tells_crashes = [] {
  std::signal(SIGSEGV, TellCrash);
  return true;
}();

// Without the folder, which differs from machine to machine.
inline const char* FileName(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

inline void NoteFailure() {
  std::fflush(stdout);
  if (std::getenv("CHECK_GOES_ON") == nullptr) std::_Exit(1);
  check_has_failed = true;
}

#define REQUIRE(condition)                                                       \
  do {                                                                           \
    check_line = __LINE__;                                                       \
    if (!(condition)) {                                                          \
      std::printf("FAIL %s:%d: %s\n", FileName(__FILE__), __LINE__, #condition); \
      NoteFailure();                                                             \
    }                                                                            \
  } while (false)

inline std::string NameOf(cudaError_t error) { return cudaGetErrorName(error); }

template <typename Result>
void CheckResult(Result result, Result expected, const char* call, const char* file, int line) {
  if (result == expected) return;
  std::printf("FAIL %s:%d: %s gave %s, not %s\n", FileName(file), line, call,
              NameOf(result).c_str(), NameOf(expected).c_str());
  NoteFailure();
}

#define EXPECT_RESULT(type, call, expected)                           \
  do {                                                                \
    check_line = __LINE__;                                            \
    CheckResult<type>((call), (expected), #call, __FILE__, __LINE__); \
  } while (false)

#define EXPECT_CUDA(call, expected) EXPECT_RESULT(cudaError_t, call, expected)
#define CUDA(call) EXPECT_CUDA(call, cudaSuccess)

inline int Pass() {
  std::printf(check_has_failed ? "FAIL\n" : "PASS\n");
  return check_has_failed ? 1 : 0;
}
