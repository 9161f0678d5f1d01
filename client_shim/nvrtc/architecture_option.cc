#include "client_shim/nvrtc/architecture_option.h"

#include <string_view>

namespace torpor::shim {
namespace {

constexpr std::string_view kReal = "sm_";
constexpr std::string_view kVirtual = "compute_";

bool NamesArchitecture(std::string_view option) {
  return option == "-arch" || option == "--gpu-architecture";
}

// The offset of the value in an option of the form name=value; 0 for other options than the
// architecture.
std::size_t ValueAt(std::string_view option) {
  const std::size_t equals = option.find('=');
  const bool is_architecture =
      equals != std::string_view::npos && NamesArchitecture(option.substr(0, equals));
  return is_architecture ? equals + 1 : 0;
}

bool MakeVirtual(std::string& option, std::size_t at) {
  if (option.compare(at, kReal.size(), kReal) != 0) return false;
  option.replace(at, kReal.size(), kVirtual);
  return true;
}

}  // namespace

VirtualOptions ForVirtualArchitecture(int count, const char* const* options) {
  VirtualOptions result;
  bool is_value = false;  // whether `option` is the value of the option before
  for (int i = 0; i < count; ++i) {
    std::string option = options[i];
    const std::size_t value_at = ValueAt(option);
    if (is_value || value_at > 0) result.is_changed |= MakeVirtual(option, value_at);
    is_value = NamesArchitecture(option);
    result.options.push_back(std::move(option));
  }
  return result;
}

}  // namespace torpor::shim
