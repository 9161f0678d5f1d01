#pragma once

#include <cstdint>
#include <string_view>

namespace torpor::ptx {

// The special registers of PTX that the emulator knows.
enum class SpecialRegister : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kDynamicSmemSize,
  kTotalSmemSize,
  kReservedSmem,
  kEnvreg,
  kPm,
  kClusterRank,
  kClusterCount,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kIsExplicitCluster,
  kWarpSize,
};

// The meaning of a name such as "%tid.x".
struct SpecialRegisterName {
  SpecialRegister special;
  std::uint32_t index;
};
// Returns false if `name` is not a special register.
bool ParseSpecialRegister(std::string_view name, SpecialRegisterName& out);

}  // namespace torpor::ptx
