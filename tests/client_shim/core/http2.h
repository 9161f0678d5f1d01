#pragma once

#include <gtest/gtest.h>

#include <string>

#include "client_shim/core/transport/nghttp2_library.h"

namespace torpor::shim {

// The system's nghttp2; a failure of the test where there is none.
inline const Nghttp2& Http2() {
  std::string why;
  const Nghttp2* const http2 = Nghttp2::Load(why);
  EXPECT_NE(http2, nullptr) << why;
  return *http2;
}

}  // namespace torpor::shim
