#pragma once

#include <string>
#include <string_view>

namespace torpor::conformance {

// A state space as instructions name it, and the register with the thread's address in it
// (PtxCase::text).
struct AddressSpace {
  const char* name;
  const char* address;
};

constexpr AddressSpace kGlobal = {".global", "GG"};
constexpr AddressSpace kShared = {".shared", "SS"};
constexpr AddressSpace kLocal = {".local", "LL"};
constexpr AddressSpace kGenericGlobal = {"", "GA"};
constexpr AddressSpace kGenericShared = {"", "SA"};
constexpr AddressSpace kGenericLocal = {"", "LA"};

// PTX with every `what` replaced.
std::string Filled(std::string text, std::string_view what, std::string_view by);

// PTX in which $S and $A have become the space and the register.
std::string In(const AddressSpace& space, std::string text);

}  // namespace torpor::conformance
