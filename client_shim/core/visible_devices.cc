#include "client_shim/core/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/uuid.h"

namespace torpor::shim {
namespace {

using Devices = std::vector<wire::DeviceDescription>;

constexpr int kNoDevice = -1;
constexpr std::string_view kUuidPrefix = "GPU-";
constexpr std::string_view kBlank = " \t\n";

// CUDA reads an index like strtol: ignores leading blanks and trailing letters.
int ByIndex(std::string_view entry, const Devices& devices) {
  entry.remove_prefix(std::min(entry.find_first_not_of(kBlank), entry.size()));
  if (entry.starts_with('+')) entry.remove_prefix(1);
  int index = kNoDevice;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  const bool exists =
      error == std::errc() && index >= 0 && static_cast<std::size_t>(index) < devices.size();
  return exists ? index : kNoDevice;
}

int ByUuid(std::string_view entry, const Devices& devices) {
  if (!entry.starts_with(kUuidPrefix)) return kNoDevice;
  int found = kNoDevice;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& uuid = devices[i].uuid;
    const std::string full = FormatUuid({reinterpret_cast<const char*>(uuid.data()), uuid.size()});
    if (!full.starts_with(entry)) continue;
    if (found != kNoDevice) return kNoDevice;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace

std::vector<int> VisibleDevices(std::string_view text, const Devices& devices) {
  const auto find = text.starts_with(kUuidPrefix) ? &ByUuid : &ByIndex;
  std::vector<int> visible;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const int device = find(text.substr(begin, end - begin), devices);
    if (device == kNoDevice) break;
    if (std::find(visible.begin(), visible.end(), device) != visible.end()) return {};
    visible.push_back(device);
    begin = end + 1;
  }
  return visible;
}

}  // namespace torpor::shim
