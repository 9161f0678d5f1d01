#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "examples/service/endpoint.h"
#include "examples/service/json_numbers.h"

namespace torpor::examples {

// What a request asks of a program under test: the first of the named numbers of its body.
class SumRequest {
 public:
  explicit SumRequest(const HttpRequest& request)
      : path_(request.path), members_(ParseNumbers(request.body)) {}

  bool Is(const char* path) const { return path_ == path; }
  bool Is(const char* path, const char* member) const {
    return Is(path) && members_ && members_->count(member) != 0;
  }
  // Of a member that Is has found.
  unsigned number(const char* member) const {
    return static_cast<unsigned>(members_->at(member).at(0));
  }

 private:
  const std::string& path_;
  const decltype(ParseNumbers("")) members_;
};

// Serves requests one at a time: `answer` gives the sum that is the reply, or nothing where there
// is no such request.
inline void ServeSums(
    const Flags& flags,
    const std::function<std::optional<unsigned long long>(const SumRequest&)>& answer) {
  std::mutex one_request;
  Serve(flags, [&](const HttpRequest& request) -> HttpResponse {
    const std::lock_guard<std::mutex> lock(one_request);
    const std::optional<unsigned long long> sum = answer(SumRequest(request));
    if (!sum) return {400, "{\"error\":\"no such request\"}\n"};
    return {200, "{\"sum\":" + std::to_string(*sum) + "}\n"};
  });
}

}  // namespace torpor::examples
