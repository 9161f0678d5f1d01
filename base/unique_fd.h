#pragma once

#include <utility>

namespace torpor {

// Owns a file descriptor and closes the descriptor on destruction; -1 if empty. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Returns the descriptor without closing; the caller owns the result.
  int Release() { return std::exchange(fd_, -1); }
  // Closes the descriptor, if any, and takes over `fd`.
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

}  // namespace torpor
