#include "server/router/request_path.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using Kind = RequestPath::Kind;

struct Case {
  const char* target;
  Kind kind;
  const char* function;
  const char* upstream_target;
};

class RequestPathTest : public ::testing::TestWithParam<Case> {};

TEST_P(RequestPathTest, IsTakenApart) {
  const RequestPath path = ParseRequestPath(GetParam().target);
  EXPECT_EQ(path.kind, GetParam().kind);
  EXPECT_EQ(path.function, GetParam().function);
  EXPECT_EQ(path.upstream_target, GetParam().upstream_target);
}

INSTANTIATE_TEST_SUITE_P(
    All, RequestPathTest,
    ::testing::Values(
        Case{"/function/f", Kind::kFunction, "f", "/"},
        Case{"/function/f/", Kind::kFunction, "f", "/"},
        Case{"/function/f?q=/x", Kind::kFunction, "f", "/?q=/x"},
        Case{"/function/f/a/b?q#", Kind::kFunction, "f", "/a/b?q#"},
        Case{"/function/f//evil.example/", Kind::kFunction, "f", "//evil.example/"},
        Case{"/function/f/../g/", Kind::kFunction, "f", "/../g/"},
        Case{"/function/", Kind::kFunction, "", "/"}, Case{"/function", Kind::kUnknown, "", ""},
        Case{"/functionf/", Kind::kUnknown, "", ""},
        Case{"http://host:1/function/f/a?b", Kind::kFunction, "f", "/a?b"},
        Case{"https://host", Kind::kUnknown, "", ""}, Case{"/livez", Kind::kLive, "", ""},
        Case{"/livez?verbose", Kind::kLive, "", ""}, Case{"/livez/", Kind::kUnknown, "", ""},
        Case{"/readyz", Kind::kReady, "", ""}, Case{"/v2/health/live", Kind::kLive, "", ""},
        Case{"/v2/health/ready", Kind::kReady, "", ""},
        Case{"/v2/models/f/ready", Kind::kFunctionReady, "f", ""},
        Case{"/v2/models/f/ready/x", Kind::kUnknown, "", ""},
        Case{"/v2/models/f", Kind::kUnknown, "", ""}, Case{"/metrics", Kind::kMetrics, "", ""},
        Case{"", Kind::kUnknown, "", ""}, Case{"*", Kind::kUnknown, "", ""},
        Case{"host:443", Kind::kUnknown, "", ""}));

}  // namespace
}  // namespace torpor::server
