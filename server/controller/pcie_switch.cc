#include "server/controller/pcie_switch.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace torpor::server {
namespace {

struct Address {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
};

std::optional<Address> ParseAddress(const std::string& text) {
  Address address;
  int length = 0;
  const int found = std::sscanf(text.c_str(), "%4x:%2x:%2x.%1x%n", &address.domain, &address.bus,
                                &address.device, &address.function, &length);
  const bool is_whole = found == 4 && static_cast<std::size_t>(length) == text.size();
  return is_whole ? std::optional(address) : std::nullopt;
}

int NumberOf(const Address& address) {
  return static_cast<int>((address.domain & 0x7fff) << 16 | address.bus << 8 | address.device << 3 |
                          address.function);
}

}  // namespace

std::optional<int> PcieSwitchOf(const std::string& pci_bus_id, const std::string& devices) {
  std::string name = pci_bus_id;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!ParseAddress(name)) return std::nullopt;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(devices + "/" + name, error);
  if (error) return std::nullopt;
  // /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/..., from the host to the GPU.
  for (const std::filesystem::path& step : path) {
    if (const std::optional<Address> root_port = ParseAddress(step)) return NumberOf(*root_port);
  }
  return std::nullopt;
}

std::optional<int> EmulatedPcieSwitchOf(const std::string& pci_bus_id) {
  constexpr unsigned kBusesOfSwitch = 16;
  std::optional<Address> address = ParseAddress(pci_bus_id);
  if (!address) return std::nullopt;
  address->bus = address->bus / kBusesOfSwitch * kBusesOfSwitch;
  return NumberOf(*address);
}

}  // namespace torpor::server
