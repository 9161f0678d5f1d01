#include "tests/server/executor/fake_daemon.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "base/check.h"

namespace torpor::executor {

FakeDaemon::FakeDaemon(const std::string& folder) : folder_(folder) {
  descriptor_listener_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, descriptor_socket().c_str(), sizeof address.sun_path - 1);
  unlink(descriptor_socket().c_str());  // an earlier daemon's
  TORPOR_CHECK(bind(descriptor_listener_.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof address) == 0);
  TORPOR_CHECK(listen(descriptor_listener_.get(), 8) == 0);
  descriptor_thread_ = std::thread([this] { ServeDescriptors(); });
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + node_socket(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  shutdown(descriptor_listener_.get(), SHUT_RDWR);
  descriptor_thread_.join();
  server_->Shutdown(std::chrono::system_clock::now());
}

void FakeDaemon::Offer(std::uint64_t session, wire::SharedMemory what, int file, Bytes bytes) {
  std::lock_guard lock(mutex_);
  files_[{session, what}] = {file, bytes};
}

void FakeDaemon::ServeDescriptors() {
  while (true) {
    const UniqueFd peer(accept4(descriptor_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return;
    wire::DescriptorRequest request;
    if (recv(peer.get(), &request, sizeof request, 0) != sizeof request) continue;
    wire::DescriptorReply reply;
    int file = -1;
    {
      std::lock_guard lock(mutex_);
      const auto found = files_.find({request.session_id, request.what});
      if (found == files_.end()) {
        reply.error = ENOENT;
      } else {
        file = found->second.first;
        reply.bytes = found->second.second;
      }
    }
    iovec data{&reply, sizeof reply};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (file >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    sendmsg(peer.get(), &message, MSG_NOSIGNAL);
  }
}

grpc::Status FakeDaemon::Attach(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::DaemonMessage, v1::ExecutorMessage>* stream) {
  {
    std::lock_guard lock(mutex_);
    context_ = context;
    stream_ = stream;
  }
  v1::ExecutorMessage message;
  while (stream->Read(&message)) {
    std::lock_guard lock(mutex_);
    if (message.has_register_()) registration_ = message.register_();
    if (message.has_context_lost()) lost_ = message.context_lost();
    if (message.has_memory_use()) memory_use_ = message.memory_use();
    if (message.has_operation_done()) {
      answers_[message.operation_done().operation_id()] = message.operation_done();
    }
    changed_.notify_all();
  }
  std::lock_guard lock(mutex_);
  context_ = nullptr;
  stream_ = nullptr;
  ended_ = true;
  changed_.notify_all();
  return grpc::Status::OK;
}

template <typename Ready>
bool FakeDaemon::WaitFor(std::unique_lock<std::mutex>& lock, Ready ready) {
  return changed_.wait_for(lock, std::chrono::seconds(20), ready);
}

std::optional<v1::ExecutorMessage::Register> FakeDaemon::WaitForExecutor() {
  std::unique_lock lock(mutex_);
  WaitFor(lock, [this] { return registration_.has_value(); });
  return registration_;
}

std::optional<v1::ExecutorMessage::ContextLost> FakeDaemon::WaitForContextLost() {
  std::unique_lock lock(mutex_);
  WaitFor(lock, [this] { return lost_.has_value(); });
  return lost_;
}

bool FakeDaemon::WaitForFragmented(Bytes bytes) {
  std::unique_lock lock(mutex_);
  return WaitFor(lock, [&] { return memory_use_ && memory_use_->fragmented_bytes() == bytes; });
}

v1::ExecutorMessage::OperationDone FakeDaemon::Do(v1::DaemonMessage operation) {
  std::unique_lock lock(mutex_);
  v1::ExecutorMessage::OperationDone none;
  none.set_code(-1);
  if (stream_ == nullptr) return none;
  const std::uint64_t id = next_operation_++;
  operation.set_operation_id(id);
  stream_->Write(operation);
  WaitFor(lock, [&] { return ended_ || answers_.contains(id); });
  const auto answer = answers_.find(id);
  return answer == answers_.end() ? none : answer->second;
}

void FakeDaemon::Hang() {
  std::lock_guard lock(mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

}  // namespace torpor::executor
