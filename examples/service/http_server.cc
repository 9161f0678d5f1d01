#include "examples/service/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace torpor::examples {
namespace {

constexpr std::size_t kMaxHeaderBytes = 64 << 10;
constexpr std::size_t kMaxBodyBytes = 16 << 20;

const char* Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    default:
      return status < 500 ? "Error" : "Internal Server Error";
  }
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The value of header `name` (lower case) in `head`, or an empty string.
std::string HeaderValue(const std::string& head, const std::string& name) {
  const std::string lower = Lower(head);
  const std::size_t at = lower.find("\r\n" + name + ":");
  if (at == std::string::npos) return "";
  const std::size_t begin = head.find_first_not_of(" \t", at + name.size() + 3);
  const std::size_t end = head.find("\r\n", at + 2);
  return begin < end ? head.substr(begin, end - begin) : "";
}

HttpResponse Error(int status, const std::string& message) {
  return {status, "{\"error\":\"" + JsonEscape(message) + "\"}\n", "application/json"};
}

// One accepted connection; owns the socket.
class Connection {
 public:
  Connection(int socket, const HttpServer::Handler& handler) : socket_(socket), handler_(handler) {}
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Serve() {
    while (ServeOne()) {
    }
  }

 private:
  // False when the connection is to be closed.
  bool ServeOne() {
    std::string head;
    if (!ReadHead(&head)) return false;
    HttpRequest request;
    const std::size_t line_end = head.find("\r\n");
    const std::size_t method_end = head.find(' ');
    const std::size_t target_end = head.find(' ', method_end + 1);
    if (method_end > line_end || target_end > line_end) {
      Send(Error(400, "malformed request line"), false);
      return false;
    }
    request.method = head.substr(0, method_end);
    request.path = head.substr(method_end + 1, target_end - method_end - 1);
    request.path = request.path.substr(0, request.path.find('?'));
    request.content_type = HeaderValue(head, "content-type");
    const bool keep_alive = Lower(HeaderValue(head, "connection")) != "close" &&
                            head.compare(target_end + 1, 8, "HTTP/1.0") != 0;
    if (!ReadBody(head, &request.body)) return false;
    return Send(Answer(request), keep_alive) && keep_alive;
  }

  HttpResponse Answer(const HttpRequest& request) {
    try {
      return handler_(request);
    } catch (const std::exception& error) {
      return Error(500, error.what());
    }
  }

  bool ReadHead(std::string* head) {
    std::size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (buffer_.size() > kMaxHeaderBytes || !Receive()) return false;
    }
    *head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    return true;
  }

  bool ReadBody(const std::string& head, std::string* body) {
    if (!HeaderValue(head, "transfer-encoding").empty()) {
      Send(Error(411, "chunked bodies are not supported"), false);
      return false;
    }
    const std::string length_text = HeaderValue(head, "content-length");
    const std::size_t length = std::strtoull(length_text.c_str(), nullptr, 10);
    if (length > kMaxBodyBytes) {
      Send(Error(413, "the body is larger than 16 MiB"), false);
      return false;
    }
    if (Lower(HeaderValue(head, "expect")) == "100-continue" &&
        !SendAll("HTTP/1.1 100 Continue\r\n\r\n")) {
      return false;
    }
    while (buffer_.size() < length) {
      if (!Receive()) return false;
    }
    *body = buffer_.substr(0, length);
    buffer_.erase(0, length);
    return true;
  }

  bool Receive() {
    char chunk[16 << 10];
    const ssize_t got = recv(socket_, chunk, sizeof(chunk), 0);
    if (got <= 0) return got < 0 && errno == EINTR;
    buffer_.append(chunk, static_cast<std::size_t>(got));
    return true;
  }

  bool Send(const HttpResponse& response, bool keep_alive) {
    return SendAll("HTTP/1.1 " + std::to_string(response.status) + " " + Reason(response.status) +
                   "\r\nContent-Type: " + response.content_type +
                   "\r\nContent-Length: " + std::to_string(response.body.size()) +
                   (keep_alive ? "" : "\r\nConnection: close") + "\r\n\r\n" + response.body);
  }

  bool SendAll(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

  const int socket_;
  const HttpServer::Handler handler_;  // a copy: the thread may outlive the server
  std::string buffer_;
};

[[noreturn]] void Throw(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {}

HttpServer::~HttpServer() {
  if (listener_ >= 0) close(listener_);
}

std::uint16_t HttpServer::Listen(const std::string& host, std::uint16_t port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0) Throw("socket");
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    errno = EINVAL;
    Throw("the address to listen on");
  }
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0) Throw("bind");
  if (listen(listener_, SOMAXCONN) != 0) Throw("listen");
  if (getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Throw("getsockname");
  }
  return ntohs(address.sin_port);
}

void HttpServer::Run() {
  while (true) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EMFILE)) continue;
    if (socket < 0) return;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    std::thread([socket, handler = handler_] { Connection(socket, handler).Serve(); }).detach();
  }
}

void HttpServer::Stop() { shutdown(listener_, SHUT_RDWR); }

std::string JsonEscape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
      escaped += code;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace torpor::examples
