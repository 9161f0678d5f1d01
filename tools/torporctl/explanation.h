#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// The calls and output of `torporctl explain`.
namespace torpor::torporctl {

// Asks the daemon for a request's trace. Returns NotFound for an unknown or forgotten request,
// Unavailable if no daemon answers.
absl::StatusOr<v1::Explanation> FetchExplanation(const std::string& admin_socket,
                                                 const std::string& request_id);

// Formats a trace as lines for people, or as a JSON object.
std::string ExplanationText(const v1::Explanation& explanation);
std::string ExplanationJson(const v1::Explanation& explanation);

}  // namespace torpor::torporctl
