#include "client_shim/core/transport/grpc_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "client_shim/core/transport/unix_socket.h"

namespace torpor::shim {
namespace {

// Replies must never wait for the client to open its window.
constexpr std::int32_t kReceiveWindow = 64 << 20;
constexpr std::uint32_t kMaxFrameSize = 1 << 20;

nghttp2_nv Header(std::string_view name, std::string_view value) {
  nghttp2_nv header{};
  header.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data()));
  header.value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data()));
  header.namelen = name.size();
  header.valuelen = value.size();
  header.flags = NGHTTP2_NV_FLAG_NONE;
  return header;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Decodes the percent-encoding of grpc-message; malformed sequences stay unchanged.
std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

// nghttp2's C callbacks; `user` is the GrpcStream.
struct GrpcStream::Callbacks {
  static GrpcStream& Self(void* user) { return *static_cast<GrpcStream*>(user); }

  static ssize_t ReadLength(nghttp2_session*, std::uint8_t, std::int32_t, std::int32_t session,
                            std::int32_t stream, std::uint32_t max_frame, void*) {
    const std::int32_t frame =
        max_frame > 1u << 30 ? 1 << 30 : static_cast<std::int32_t>(max_frame);
    return std::min({session, stream, frame});
  }

  // Returns how many queued bytes go into the next DATA frame; SendData copies them.
  static ssize_t ReadData(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t length,
                          std::uint32_t* flags, nghttp2_data_source*, void* user) {
    GrpcStream& self = Self(user);
    if (self.queued_bytes_ == 0) {
      self.data_deferred_ = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    return static_cast<ssize_t>(std::min(length, self.queued_bytes_));
  }

  static int SendData(nghttp2_session*, nghttp2_frame*, const std::uint8_t* header,
                      std::size_t length, nghttp2_data_source*, void* user) {
    constexpr std::size_t kFrameHeader = 9;
    GrpcStream& self = Self(user);
    self.out_.insert(self.out_.end(), header, header + kFrameHeader);
    self.TakeQueued(length);
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
    Self(user).OnHeader({reinterpret_cast<const char*>(name), name_size},
                        {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                    std::size_t length, void* user) {
    GrpcStream& self = Self(user);
    if (stream == self.stream_id_) self.decoder_.Push({data, length});
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, std::int32_t stream, std::uint32_t, void* user) {
    GrpcStream& self = Self(user);
    if (stream == self.stream_id_) self.Close(self.StatusText());
    return 0;
  }
};

GrpcStream::GrpcStream(const Nghttp2& http2, UniqueFd socket, const std::string& method)
    : http2_(http2), socket_(std::move(socket)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  http2_.session_callbacks_new(&callbacks);
  http2_.set_read_length_callback(callbacks, &Callbacks::ReadLength);
  http2_.set_send_data_callback(callbacks, &Callbacks::SendData);
  http2_.set_on_header_callback(callbacks, &Callbacks::OnHeader);
  http2_.set_on_data_callback(callbacks, &Callbacks::OnData);
  http2_.set_on_stream_close_callback(callbacks, &Callbacks::OnStreamClose);
  http2_.session_client_new(&session_, callbacks, this);
  http2_.session_callbacks_del(callbacks);

  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kReceiveWindow},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameSize},
  };
  http2_.submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  http2_.session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kReceiveWindow);

  const nghttp2_nv headers[] = {
      Header(":method", "POST"),
      Header(":scheme", "http"),
      Header(":path", method),
      Header(":authority", "localhost"),
      Header("content-type", "application/grpc"),
      Header("te", "trailers"),
  };
  nghttp2_data_provider body{};
  body.read_callback = &Callbacks::ReadData;
  stream_id_ =
      http2_.submit_request(session_, nullptr, headers, std::size(headers), &body, nullptr);
  if (stream_id_ < 0) Close(std::string("HTTP/2: ") + http2_.strerror(stream_id_));
}

GrpcStream::~GrpcStream() { http2_.session_del(session_); }

void GrpcStream::Send(std::vector<std::uint8_t> bytes) {
  const std::size_t begin = SealFrame(bytes);
  queued_bytes_ += bytes.size() - begin;
  queue_.push_back({std::move(bytes), begin});
  if (data_deferred_) {
    data_deferred_ = false;
    http2_.session_resume_data(session_, stream_id_);
  }
}

void GrpcStream::TakeQueued(std::size_t bytes) {
  queued_bytes_ -= bytes;
  while (bytes > 0) {
    Queued& front = queue_.front();
    const std::size_t part = std::min(bytes, front.bytes.size() - front.at);
    const auto from = front.bytes.begin() + static_cast<std::ptrdiff_t>(front.at);
    out_.insert(out_.end(), from, from + static_cast<std::ptrdiff_t>(part));
    front.at += part;
    bytes -= part;
    if (front.at == front.bytes.size()) queue_.pop_front();
  }
}

void GrpcStream::FillOut() {
  out_.clear();
  out_at_ = 0;
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t bytes = http2_.session_mem_send(session_, &data);
    if (bytes < 0) return Close(std::string("HTTP/2: ") + http2_.strerror(static_cast<int>(bytes)));
    if (bytes == 0) return;  // DATA frames have gone through SendData meanwhile
    out_.insert(out_.end(), data, data + bytes);
  }
}

void GrpcStream::Write() {
  while (!closed_) {
    if (out_at_ == out_.size()) FillOut();
    if (out_at_ == out_.size()) return;
    const ssize_t sent =
        send(fd(), out_.data() + out_at_, out_.size() - out_at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      out_at_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      return FeedEnd(std::string("the connection broke: ") + std::strerror(errno));
    }
  }
}

void GrpcStream::Transfer() {
  std::uint8_t buffer[16 * 1024];
  Write();
  const ssize_t got = Receive(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) Feed({buffer, static_cast<std::size_t>(got)});
  if (got == 0 || got == -2) FeedEnd("it closed the connection");
}

short GrpcStream::EventsToWatch() const {
  const int out = socket_is_full() ? POLLOUT : 0;
  return static_cast<short>(POLLIN | out);
}

void GrpcStream::FeedEnd(const std::string& why) {
  was_cut_ = was_cut_ || !closed_;
  Close(why);
}

void GrpcStream::Feed(std::span<const std::uint8_t> bytes) {
  if (closed_) return;
  const ssize_t taken = http2_.session_mem_recv(session_, bytes.data(), bytes.size());
  if (taken < 0) return Close(std::string("HTTP/2: ") + http2_.strerror(static_cast<int>(taken)));
  Write();  // acknowledgements and window updates, and what a window update lets go
}

bool GrpcStream::Next(std::span<const std::uint8_t>& payload) {
  const FrameDecoder::Step step = decoder_.Next(payload);
  if (step == FrameDecoder::Step::kMalformed) Close("the peer sent a malformed frame");
  return step == FrameDecoder::Step::kFrame;
}

void GrpcStream::Close(const std::string& why) {
  if (closed_) return;
  closed_ = true;
  why_closed_ = why;
}

void GrpcStream::OnHeader(std::string_view name, std::string_view value) {
  if (name == ":status") http_status_ = value;
  if (name == "grpc-status") grpc_status_ = value;
  if (name == "grpc-message") grpc_message_ = PercentDecoded(value);
}

std::string GrpcStream::StatusText() const {
  if (!grpc_message_.empty()) return grpc_message_ + " (gRPC status " + grpc_status_ + ")";
  if (grpc_status_ == "0") return "the peer ended the stream";
  if (!grpc_status_.empty()) return "gRPC status " + grpc_status_;
  if (!http_status_.empty() && http_status_ != "200") return "HTTP status " + http_status_;
  return "the peer reset the stream";
}

}  // namespace torpor::shim
