#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace torpor::probe {

// Writes what an item finds out, a JSON object a line: {name, values, units, error}. Each line is
// written at once, so that an item that dies loses only what comes after.
class Report {
 public:
  // Lines go to descriptor `fd`; their names begin with `item` and a slash.
  Report(int fd, std::string item) : fd_(fd), item_(std::move(item)) {}

  // `units` says what the numbers are: us, ms, GB/s, MiB, count.
  void Numbers(const std::string& name, const std::string& units,
               const std::vector<double>& values);
  // Findings that are no numbers, such as the driver's answers.
  void Texts(const std::string& name, const std::vector<std::string>& values);
  void Failed(const std::string& name, const std::string& error);

 private:
  const int fd_;
  const std::string item_;
};

// Measures from its construction.
class Stopwatch {
 public:
  double us() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
  }
  double ms() const { return us() / 1e3; }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace torpor::probe
