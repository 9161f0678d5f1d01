#pragma once

#include <string>
#include <string_view>
#include <vector>

// Rules for header fields in a proxy (RFC 9110, 7.6.1).
namespace torpor::server {

bool EqualsIgnoringCase(std::string_view a, std::string_view b);

// Splits a comma-separated header value into items without surrounding blanks; skips empty items.
std::vector<std::string_view> ListItems(std::string_view value);

// Whether the field concerns one connection only or is written by the router: never forwarded.
bool IsHopByHop(std::string_view field_name);

// Whether a Connection field may remove `field_name` from the message. Fields that frame or route
// the message stay, as their removal would let a client change the forwarded message.
bool ConnectionMayRemove(std::string_view field_name);

// Whether the text has 1 to 128 letters, digits and -_. only: safe to log and to forward.
bool IsRequestId(std::string_view text);

}  // namespace torpor::server
