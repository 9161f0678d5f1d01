#include "tests/client_shim/fake_daemon.h"

#include <fcntl.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/units.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::testing {
namespace {

constexpr std::chrono::seconds kPatience{20};

UniqueFd MemoryFile(const char* name, std::uint64_t bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  return fd;
}

UniqueFd Listen(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(fd.get(), 8), 0);
  return fd;
}

void SendDescriptor(int connection, int descriptor, std::uint64_t bytes) {
  wire::DescriptorReply reply;
  reply.bytes = bytes;
  iovec data{&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  EXPECT_EQ(sendmsg(connection, &message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof reply));
}

// Whether torpord ends the stream after the message.
bool EndsStream(const wire::ClientMessage& message) {
  const auto* const ack = std::get_if<wire::HelloAck>(&message);
  return std::holds_alternative<wire::Inquiry>(message) || (ack != nullptr && ack->error != 0);
}

}  // namespace

FakeDaemon::FakeDaemon(Script script) : script_(std::move(script)) {
  auto_grant_ = script_.auto_grant;
  answers_memory_ = script_.answers_memory;
  std::string pattern = ::testing::TempDir() + "/torpor-shim-XXXXXX";
  folder_ = mkdtemp(pattern.data());
  window_ = MemoryFile("window", script_.window_bytes);
  arena_ = MemoryFile("arena", kHostBytes);
  page_ = static_cast<wire::CompletionPage*>(
      mmap(nullptr, script_.window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, window_.get(), 0));
  descriptor_listener_ = Listen(folder_ + "/descriptors.sock");
  descriptor_server_ = std::thread([this] { ServeDescriptors(); });
  Serve();
}

void FakeDaemon::Serve() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  shutdown(descriptor_listener_.get(), SHUT_RDWR);
  descriptor_server_.join();
  Stop();
  munmap(page_, script_.window_bytes);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void FakeDaemon::Stop() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

// A gRPC service belongs to one server at a time.
void FakeDaemon::Restart() {
  Stop();
  Serve();
}

void FakeDaemon::ServeDescriptors() {
  for (;;) {
    UniqueFd connection(accept4(descriptor_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    wire::DescriptorRequest request;
    if (recv(connection.get(), &request, sizeof request, 0) != sizeof request) continue;
    if (script_.dies_before_ack) Stop();
    const bool wants_window = request.what == wire::SharedMemory::kWindow;
    SendDescriptor(connection.get(), wants_window ? window_.get() : arena_.get(),
                   wants_window ? script_.window_bytes : kHostBytes);
  }
}

grpc::Status FakeDaemon::Connect(grpc::ServerContext*, Stream* stream) {
  {
    std::lock_guard lock(mutex_);
    stream_ = stream;
  }
  v1::Frame frame;
  while (stream->Read(&frame)) {
    wire::ClientMessage message;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(frame.payload().data());
    if (!wire::DecodeMessage(std::span(bytes, frame.payload().size()), message)) break;
    OnMessage(*stream, message);
    if (EndsStream(message)) break;
  }
  std::lock_guard lock(mutex_);
  if (stream_ == stream) stream_ = nullptr;
  return grpc::Status::OK;
}

wire::HelloReply FakeDaemon::HelloAnswer() const {
  wire::HelloReply reply;
  reply.error = script_.hello_error;
  reply.message = script_.hello_message;
  reply.session_id = 42;
  reply.session_key.fill(0x5a);
  reply.function = "test";
  reply.descriptor_socket = folder_ + "/descriptors.sock";
  reply.device_base = kDeviceBase;
  reply.device_bytes = kDeviceBytes;
  reply.memory_limit = kDeviceBytes;
  reply.host_base = kHostBase;
  reply.host_bytes = kHostBytes;
  reply.window_bytes = script_.window_bytes;
  reply.devices.resize(script_.devices);
  reply.devices[0].name = "Fake GPU";
  reply.devices[0].total_bytes = kDeviceBytes;
  reply.devices[0].attributes.assign(150, 1024);
  reply.devices[0].driver_version = 13000;
  reply.devices[0].pci_bus_id = "0000:01:00.0";
  reply.replays = script_.replays;
  return reply;
}

wire::InquiryReply FakeDaemon::InquiryAnswer() const {
  wire::InquiryReply reply;
  reply.devices = HelloAnswer().devices;
  for (std::size_t i = 0; i < reply.devices.size(); ++i)
    reply.devices[i].uuid[0] = static_cast<std::uint8_t>(i);
  reply.free_bytes.assign(reply.devices.size(), kDeviceBytes / 2);
  return reply;
}

void FakeDaemon::OnMessage(Stream& stream, const wire::ClientMessage& message) {
  FakeExecutor* executor = nullptr;
  bool answers_memory = false;
  {  // whoever has an answer finds what it answers among what was received
    std::lock_guard lock(mutex_);
    received_.push_back(message);
    if (std::holds_alternative<wire::LeaseRequest>(message)) executor = auto_grant_;
    answers_memory = answers_memory_;
  }
  if (script_.answers_hello) AnswerHello(stream, message);
  if (answers_memory) AnswerMemory(stream, message);
  changed_.notify_all();
  if (executor) Grant(*executor, /*is_explicit=*/false);
}

void FakeDaemon::AnswerHello(Stream& stream, const wire::ClientMessage& message) {
  if (std::holds_alternative<wire::Hello>(message)) Answer(stream, HelloAnswer());
  if (std::holds_alternative<wire::Inquiry>(message)) Answer(stream, InquiryAnswer());
  if (std::holds_alternative<wire::Resume>(message)) {
    std::unique_lock lock(mutex_);
    const std::optional<wire::ServerMessage> answer = resume_answer_;
    lock.unlock();
    if (answer) Answer(stream, *answer);
  }
  if (const auto* secondary = std::get_if<wire::DeviceHello>(&message)) {
    wire::HelloReply reply = HelloAnswer();
    const auto device = static_cast<std::uint64_t>(secondary->device);
    reply.session_id += device;
    reply.host_bytes = 0;
    Answer(stream, reply);
  }
}

void FakeDaemon::AnswerMemory(Stream& stream, const wire::ClientMessage& message) {
  if (const auto* ask = std::get_if<wire::Malloc>(&message)) {
    Answer(stream, wire::MemoryReply{ask->request_id, 0, "", next_device_});
    next_device_ += RoundUp(ask->bytes, 512);
  }
  if (const auto* ask = std::get_if<wire::HostAlloc>(&message)) {
    Answer(stream, wire::MemoryReply{ask->request_id, 0, "", next_host_});
    next_host_ += RoundUp(ask->bytes, 4096);
  }
  if (const auto* ask = std::get_if<wire::Free>(&message))
    Answer(stream, wire::MemoryReply{ask->request_id, 0, "", 0});
  if (const auto* ask = std::get_if<wire::HostFree>(&message))
    Answer(stream, wire::MemoryReply{ask->request_id, 0, "", 0});
  if (const auto* ask = std::get_if<wire::ShareMemory>(&message))
    Answer(stream, wire::ShareMemoryReply{ask->request_id, 0, "", {1, 2, 3}});
  if (const auto* ask = std::get_if<wire::OpenMemory>(&message))
    Answer(stream,
           wire::OpenMemoryReply{ask->request_id, script_.open_error, "", kForeignBytes, 0});
  if (const auto* ask = std::get_if<wire::CloseMemory>(&message))
    Answer(stream, wire::MemoryReply{ask->request_id, 0, "", 0});
  if (const auto* ask = std::get_if<wire::MemGetInfo>(&message))
    Answer(stream, wire::MemGetInfoReply{ask->request_id, kDeviceBytes / 2, kDeviceBytes});
}

void FakeDaemon::set_auto_grant(FakeExecutor* executor) {
  std::lock_guard lock(mutex_);
  auto_grant_ = executor;
}

void FakeDaemon::set_answers_memory(bool answers) {
  std::lock_guard lock(mutex_);
  answers_memory_ = answers;
}

void FakeDaemon::set_resume_answer(std::optional<wire::ServerMessage> answer) {
  std::lock_guard lock(mutex_);
  resume_answer_ = std::move(answer);
}

std::uint64_t FakeDaemon::Grant(const FakeExecutor& executor, bool is_explicit,
                                std::uint64_t saved_command) {
  wire::LeaseGrant grant;
  {
    std::lock_guard lock(mutex_);
    grant.lease_id = next_lease_++;
  }
  grant.is_explicit = is_explicit;
  grant.gpu = 0;
  grant.executor_epoch = 1;
  grant.executor_socket = executor.socket();
  grant.saved_command = saved_command;
  Send(grant);
  return grant.lease_id;
}

void FakeDaemon::Send(const wire::ServerMessage& message) {
  const std::vector<std::uint8_t> bytes = wire::EncodeMessage(message);
  SendRaw(std::string(bytes.begin(), bytes.end()));
}

void FakeDaemon::Answer(Stream& stream, const wire::ServerMessage& message) {
  const std::vector<std::uint8_t> bytes = wire::EncodeMessage(message);
  v1::Frame frame;
  frame.set_payload(bytes.data(), bytes.size());
  std::lock_guard lock(mutex_);
  stream.Write(frame);
}

void FakeDaemon::SendRaw(std::string payload) {
  v1::Frame frame;
  frame.set_payload(std::move(payload));
  std::lock_guard lock(mutex_);
  ASSERT_NE(stream_, nullptr);
  stream_->Write(frame);
}

void FakeDaemon::AwaitAny(std::unique_lock<std::mutex>& lock) {
  if (!changed_.wait_for(lock, kPatience, [&] { return !received_.empty(); }))
    throw std::runtime_error("the message did not come");
}

}  // namespace torpor::testing
