#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace torpor::examples {

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::string content_type;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
};

// The smallest HTTP/1.1 server that an inference program needs: keep-alive, Content-Length
// bodies (at most 16 MiB), one thread a connection.
class HttpServer {
 public:
  // Called on the connections' threads, several at a time. What it throws becomes a 500 whose
  // body holds the exception's text.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds `host`:`port`; port 0 takes any free one. Returns the port, or throws
  // std::system_error.
  std::uint16_t Listen(const std::string& host, std::uint16_t port);

  // Accepts connections until the process ends or Stop() is called from another thread.
  void Run();
  void Stop();

 private:
  Handler handler_;
  int listener_ = -1;
};

// `text` as the inside of a JSON string.
std::string JsonEscape(const std::string& text);

}  // namespace torpor::examples
