#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"

namespace torpor::loadgen {

struct HttpAnswer {
  // Ok: there is an answer, whatever its HTTP status. DeadlineExceeded: none in time.
  // Unavailable: none, the message says why.
  absl::Status status;
  int http_status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Many HTTP/1.1 requests and timers on one thread: everything is called, and calls back, on the
// thread that is in Run(). Connections are kept alive and opened as needed, so that a slow
// answer never delays the next request.
class HttpClient {
 public:
  using OnAnswer = std::function<void(HttpAnswer)>;

  // Idle connections are closed where there would be more than so many in all; 0: any number.
  explicit HttpClient(std::size_t max_connections);
  ~HttpClient();

  // Sends `body` to http://`host``path` (host is host:port). `on_answer` is called exactly once.
  void Post(const std::string& host, const std::string& path, const std::string& body,
            TimePoint give_up, OnAnswer on_answer);

  // Calls `function` at `when`, or at once if that has passed.
  void CallAt(TimePoint when, std::function<void()> function);

  // Until nothing is under way and no call is due, or Stop().
  void Run();
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace torpor::loadgen
