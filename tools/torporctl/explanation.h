#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"

// What `torporctl explain` asks and prints.
namespace torpor::torporctl {

absl::StatusOr<v1::Explanation> FetchExplanation(const std::string& admin_socket,
                                                 const std::string& request_id);

std::string ExplanationText(const v1::Explanation& explanation);
std::string ExplanationJson(const v1::Explanation& explanation);

}  // namespace torpor::torporctl
