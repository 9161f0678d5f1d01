#pragma once

#include <string>
#include <string_view>
#include <vector>

// Which header fields pass through the proxy (RFC 9110, 7.6.1).
namespace torpor::server {

bool EqualsIgnoringCase(std::string_view a, std::string_view b);

// The items of a comma-separated header value, without blanks around them; empty ones are left
// out.
std::vector<std::string_view> ListItems(std::string_view value);

// Concerns one connection only, or is ours to write: never forwarded as it is.
bool IsHopByHop(std::string_view field_name);

// Whether a Connection field that names `field_name` takes it off the message. Fields that frame
// or route the message cannot be taken off: that would let a client change what we forward.
bool ConnectionMayRemove(std::string_view field_name);

// 1 to 128 letters, digits and -_.: so that it can be logged and passed on as it is.
bool IsRequestId(std::string_view text);

}  // namespace torpor::server
