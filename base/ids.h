#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace torpor {

// NOLINT below: clang-tidy 14 takes the 0 of a defaulted <=> for a null pointer.

// A 64-bit identifier. `Tag` keeps identifiers of different kinds from mixing. Zero is invalid.
template <typename Tag>
struct Id {
  std::uint64_t value = 0;

  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;  // NOLINT
};

using SessionId = Id<struct SessionTag>;    // one client process; never reused while the node is up
using InstanceId = Id<struct InstanceTag>;  // all sessions under one token
using LeaseId = Id<struct LeaseTag>;        // never reused while the node is up
using RequestId = Id<struct RequestTag>;    // one HTTP request

using DomainId = Id<struct DomainTag>;  // sessions that share executors, and may reach each other

// Index of a GPU of this node, as in torpor-executor --gpu N; -1 if unset.
struct GpuIndex {
  std::int32_t value = -1;
  friend constexpr auto operator<=>(const GpuIndex&, const GpuIndex&) = default;  // NOLINT
};

// A place for one of a GPU's executors, from 0, whichever process has the place at a time.
struct ExecutorSeat {
  GpuIndex gpu;
  int number = 0;

  constexpr ExecutorSeat() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): many GPUs have one executor only.
  constexpr ExecutorSeat(GpuIndex of, int seat = 0) : gpu(of), number(seat) {}
  friend constexpr auto operator<=>(const ExecutorSeat&, const ExecutorSeat&) = default;  // NOLINT
};

}  // namespace torpor

template <typename Tag>
struct std::hash<torpor::Id<Tag>> {
  std::size_t operator()(torpor::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
