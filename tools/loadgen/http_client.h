#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"

namespace torpor::loadgen {

// The outcome of a request.
struct HttpAnswer {
  // OK: an answer came, of any HTTP status. DeadlineExceeded: no answer in time. Unavailable: no
  // answer; the message gives the reason.
  absl::Status status;
  int http_status = 0;                         // 0 without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Sends many HTTP/1.1 requests and runs timers on a single thread. Not thread-safe: call every
// function on the thread of Run(); callbacks run there, too. The client keeps connections alive and
// opens more as needed, so a slow answer never delays the next request.
class HttpClient {
 public:
  using OnAnswer = std::function<void(HttpAnswer)>;

  // Closes idle connections to stay within `max_connections` in all; 0 means no limit.
  explicit HttpClient(std::size_t max_connections);
  ~HttpClient();

  // Sends `body` to http://`host``path` (`host` is host:port). Calls `on_answer` exactly once, with
  // DeadlineExceeded if no answer has come by `give_up`.
  void Post(const std::string& host, const std::string& path, const std::string& body,
            TimePoint give_up, OnAnswer on_answer);

  // Calls `function` at `when`, or at once if `when` has passed.
  void CallAt(TimePoint when, std::function<void()> function);

  // Returns when no request is under way and no call is due, or after Stop().
  void Run();
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace torpor::loadgen
