#include "tests/conformance/address_space.h"

namespace torpor::conformance {

std::string Filled(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.replace(at, what.size(), by);
  return text;
}

std::string In(const AddressSpace& space, std::string text) {
  return Filled(Filled(std::move(text), "$S", space.name), "$A", space.address);
}

}  // namespace torpor::conformance
