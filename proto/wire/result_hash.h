#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace torpor::wire {

// A hash of a call's result, by which a replay is compared with what the program has seen. Four
// independent lanes, so that hashing keeps up with a copy of the same bytes. Not for adversaries: a
// client that deceives itself harms only its own session.
inline std::uint64_t ResultHash(std::span<const std::uint8_t> bytes) {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  constexpr std::size_t kLanes = 4;
  std::array<std::uint64_t, kLanes> lanes{1, 2, 3, 4};
  const auto mix = [](std::uint64_t lane, std::uint64_t word) {
    lane = (lane ^ word) * kOdd;
    return lane ^ (lane >> 29);
  };
  std::uint64_t word = 0;
  std::size_t at = 0;
  for (; at + kLanes * sizeof word <= bytes.size(); at += kLanes * sizeof word) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::memcpy(&word, bytes.data() + at + lane * sizeof word, sizeof word);
      lanes[lane] = mix(lanes[lane], word);
    }
  }
  std::uint64_t hash = bytes.size();
  for (; at < bytes.size(); at += sizeof word) {
    word = 0;
    const std::size_t rest = bytes.size() - at;
    std::memcpy(&word, bytes.data() + at, rest < sizeof word ? rest : sizeof word);
    hash = mix(hash, word);
  }
  for (const std::uint64_t lane : lanes) hash = mix(hash, lane);
  return hash;
}

}  // namespace torpor::wire
