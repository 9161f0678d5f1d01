#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/soak/failures.h"
#include "tests/soak/gate.h"

namespace torpor::soak {

// An administrator who moves functions' memory about with every hint that there is. A hint that is
// neither carried out nor refused for what the function is doing is a failure of the test.
class Hints {
 public:
  Hints(std::string admin_socket, std::vector<std::string> functions, int gpus, Failures& failures);

  // A random hint for a random function. Thread-safe.
  void GiveOne(std::mt19937& random);
  // No hint is under way from now on, as long as the lock is held.
  std::unique_lock<std::shared_mutex> Pause() { return std::unique_lock(pause_); }
  // Thread-safe, too.
  void EvictAll();
  void UnpinAll();

  std::uint64_t followed() const { return followed_; }
  std::uint64_t refused() const { return refused_; }

 private:
  void Pin(const std::string& function);
  void Note(const char* hint, const std::string& function, const absl::Status& status);

  const std::string admin_socket_;
  const std::vector<std::string> functions_;
  const int gpus_;
  Failures& failures_;
  std::shared_mutex pause_;
  std::mutex mutex_;
  std::deque<std::string> pinned_;
  std::atomic<std::uint64_t> followed_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
};

// Kills the executor of `gpu` at a moment when no request runs there and what is resident there is
// in step with the images; requests on other GPUs go on. Returns once the daemon knows. All
// requests to the node come through `gate`, all hints from `hints`: an image on its way from the
// GPU would not be in step.
void KillExecutor(const std::string& admin_socket, int gpu, Gate& gate, Hints& hints,
                  Failures& failures);

}  // namespace torpor::soak
