#pragma once

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/fields.hpp>
#include <string_view>

namespace torpor::server {

inline std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Copies the header fields that may cross the proxy (server/router/header_rules.h).
void CopyEndToEnd(const boost::beast::http::fields& from, boost::beast::http::fields& to);

}  // namespace torpor::server
