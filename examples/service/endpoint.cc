#include "examples/service/endpoint.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace torpor::examples {

Flags EndpointFlags() { return {{"host", "127.0.0.1"}, {"port", "0"}}; }

HttpServer::Handler InferenceHandler(const std::string& path, HttpServer::Handler answer) {
  const auto one_request = std::make_shared<std::mutex>();
  return [path, answer = std::move(answer), one_request](const HttpRequest& request) {
    if (request.path == "/healthz") return HttpResponse{200, "{\"status\":\"ok\"}\n"};
    if (request.path != path) return HttpResponse{404, "{\"error\":\"no such path\"}\n"};
    if (request.method != "POST") return HttpResponse{405, "{\"error\":\"use POST\"}\n"};
    const std::lock_guard<std::mutex> lock(*one_request);
    return answer(request);
  };
}

void Serve(const Flags& flags, HttpServer::Handler handler) {
  const std::string& host = flags.at("host");
  const auto port = static_cast<std::uint16_t>(IntFlag(flags, "port", 0, 65535));
  HttpServer server(std::move(handler));
  const int bound = server.Listen(host, port);
  std::printf("listening on %s:%d\n", host.c_str(), bound);
  std::fflush(stdout);
  server.Run();
}

}  // namespace torpor::examples
