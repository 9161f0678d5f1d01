#include "emulator/ptx/special_register.h"

#include <charconv>
#include <unordered_map>
#include <utility>

namespace torpor::ptx {
namespace {

using Table = std::unordered_map<std::string_view, SpecialRegister>;

// Registers without a number in their names.
const Table& SpecialRegisters() {
  static const Table table = {
      {"%tid.x", SpecialRegister::kTidX},
      {"%tid.y", SpecialRegister::kTidY},
      {"%tid.z", SpecialRegister::kTidZ},
      {"%ntid.x", SpecialRegister::kNtidX},
      {"%ntid.y", SpecialRegister::kNtidY},
      {"%ntid.z", SpecialRegister::kNtidZ},
      {"%ctaid.x", SpecialRegister::kCtaidX},
      {"%ctaid.y", SpecialRegister::kCtaidY},
      {"%ctaid.z", SpecialRegister::kCtaidZ},
      {"%nctaid.x", SpecialRegister::kNctaidX},
      {"%nctaid.y", SpecialRegister::kNctaidY},
      {"%nctaid.z", SpecialRegister::kNctaidZ},
      {"%laneid", SpecialRegister::kLaneid},
      {"%warpid", SpecialRegister::kWarpid},
      {"%nwarpid", SpecialRegister::kNwarpid},
      {"%smid", SpecialRegister::kSmid},
      {"%nsmid", SpecialRegister::kNsmid},
      {"%gridid", SpecialRegister::kGridid},
      {"%lanemask_eq", SpecialRegister::kLanemaskEq},
      {"%lanemask_le", SpecialRegister::kLanemaskLe},
      {"%lanemask_lt", SpecialRegister::kLanemaskLt},
      {"%lanemask_ge", SpecialRegister::kLanemaskGe},
      {"%lanemask_gt", SpecialRegister::kLanemaskGt},
      {"%clock", SpecialRegister::kClock},
      {"%clock_hi", SpecialRegister::kClockHi},
      {"%clock64", SpecialRegister::kClock64},
      {"%globaltimer", SpecialRegister::kGlobaltimer},
      {"%globaltimer_lo", SpecialRegister::kGlobaltimerLo},
      {"%globaltimer_hi", SpecialRegister::kGlobaltimerHi},
      {"%dynamic_smem_size", SpecialRegister::kDynamicSmemSize},
      {"%total_smem_size", SpecialRegister::kTotalSmemSize},
      {"%cluster_ctarank", SpecialRegister::kClusterRank},
      {"%cluster_nctarank", SpecialRegister::kClusterCount},
      {"%clusterid.x", SpecialRegister::kClusteridX},
      {"%clusterid.y", SpecialRegister::kClusteridY},
      {"%clusterid.z", SpecialRegister::kClusteridZ},
      {"%nclusterid.x", SpecialRegister::kNclusteridX},
      {"%nclusterid.y", SpecialRegister::kNclusteridY},
      {"%nclusterid.z", SpecialRegister::kNclusteridZ},
      {"%cluster_ctaid.x", SpecialRegister::kClusterCtaidX},
      {"%cluster_ctaid.y", SpecialRegister::kClusterCtaidY},
      {"%cluster_ctaid.z", SpecialRegister::kClusterCtaidZ},
      {"%cluster_nctaid.x", SpecialRegister::kClusterNctaidX},
      {"%cluster_nctaid.y", SpecialRegister::kClusterNctaidY},
      {"%cluster_nctaid.z", SpecialRegister::kClusterNctaidZ},
      {"%is_explicit_cluster", SpecialRegister::kIsExplicitCluster},
      {"WARP_SZ", SpecialRegister::kWarpSize},
  };
  return table;
}

}  // namespace

bool ParseSpecialRegister(std::string_view name, SpecialRegisterName& out) {
  out.index = 0;
  if (const auto found = SpecialRegisters().find(name); found != SpecialRegisters().end()) {
    out.special = found->second;
    return true;
  }
  for (const auto& [prefix, special] :
       {std::pair{std::string_view("%envreg"), SpecialRegister::kEnvreg},
        std::pair{std::string_view("%pm"), SpecialRegister::kPm},
        std::pair{std::string_view("%reserved_smem_offset_"), SpecialRegister::kReservedSmem}}) {
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, out.index);
    if (parsed.ec != std::errc() || parsed.ptr != end) continue;
    out.special = special;
    return true;
  }
  return false;
}

}  // namespace torpor::ptx
