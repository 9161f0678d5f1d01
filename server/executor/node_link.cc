#include "server/executor/node_link.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "base/thread_name.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::executor {
namespace {

constexpr auto kFinishGrace = std::chrono::milliseconds(500);
// Between two looks for the next torpord. A start of torpord takes longer.
constexpr auto kLookAgain = std::chrono::milliseconds(10);

// Tells files apart that were at this path one after another.
NodeLink::FileIdentity FileAt(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return {};
  return {file.st_ino, static_cast<std::uint64_t>(file.st_ctim.tv_sec),
          static_cast<std::uint64_t>(file.st_ctim.tv_nsec)};
}

std::shared_ptr<grpc::Channel> Dial(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // A channel of its own: else a failure counts for the next attempt, which would be put off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

NodeLink::NodeLink(std::string socket_path) : socket_path_(std::move(socket_path)) {}

NodeLink::~NodeLink() {
  is_ending_ = true;
  if (const auto open = stream()) open->context.TryCancel();
  if (thread_.joinable()) thread_.join();
}

void NodeLink::Start(const v1::ExecutorMessage& registration, ExecutorLoop& loop) {
  {
    MutexLock lock(&mutex_);
    registration_ = registration;
  }
  loop_ = &loop;
  Open();
}

void NodeLink::RegisterAgain() { Open(); }

void NodeLink::NoteDomain(const std::string& domain) {
  MutexLock lock(&mutex_);
  registration_.mutable_register_()->set_domain(domain);
}

void NodeLink::Open() {
  daemon_ = FileAt(socket_path_);
  auto opened = std::make_shared<Stream>();
  opened->stub = v1::Node::NewStub(Dial(socket_path_));
  opened->call = opened->stub->Attach(&opened->context);
  v1::ExecutorMessage registration;
  {
    MutexLock lock(&mutex_);
    registration = registration_;
  }
  opened->call->Write(registration);
  {
    MutexLock lock(&mutex_);
    stream_ = opened;
  }
  InBackground([this, opened] { Listen(opened); });
}

void NodeLink::Listen(const std::shared_ptr<Stream>& stream) {
  v1::DaemonMessage message;
  while (stream->call->Read(&message)) loop_->Post(std::move(message));
  {
    MutexLock lock(&mutex_);
    stream_ = nullptr;
  }
  // Without its process the other side has no word of its own.
  const grpc::Status end = stream->call->Finish();
  const bool is_refusal = end.error_code() == grpc::StatusCode::ABORTED;
  loop_->Post(DaemonGone{is_refusal ? end.error_message() : "the node stream has ended",
                         /*is_final=*/is_refusal});
}

void NodeLink::AwaitNext(Duration patience) {
  InBackground([this, until = SteadyClock().Now() + patience] {
    while (!is_ending_ && !IsAnotherThere()) {
      if (SteadyClock().Now() >= until) {
        return loop_->Post(DaemonGone{"no other has come", /*is_final=*/true});
      }
      std::this_thread::sleep_for(kLookAgain);
    }
    loop_->Post(DaemonBack{});
  });
}

bool NodeLink::IsAnotherThere() const {
  // Of a process that dies the socket may be open for a moment longer.
  return FileAt(socket_path_) != daemon_ && server::IsListening(socket_path_);
}

void NodeLink::InBackground(std::function<void()> work) {
  if (thread_.joinable()) thread_.join();
  is_idle_ = false;
  thread_ = std::thread([this, work = std::move(work)] {
    NameThread("torpord-link");
    work();
    is_idle_ = true;
    is_idle_.notify_all();
  });
}

std::shared_ptr<NodeLink::Stream> NodeLink::stream() {
  MutexLock lock(&mutex_);
  return stream_;
}

void NodeLink::Send(const v1::ExecutorMessage& message) {
  if (const auto open = stream()) open->call->Write(message);
}

void NodeLink::Finish() {
  is_ending_ = true;
  const auto open = stream();
  if (open) open->call->WritesDone();
  // torpord answers the end of the stream with an end; if torpord does not, cancelling ends the
  // wait.
  std::thread impatient([this, open] {
    const auto deadline = std::chrono::steady_clock::now() + kFinishGrace;
    while (!is_idle_ && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (open) open->context.TryCancel();
  });
  is_idle_.wait(false);
  impatient.join();
}

}  // namespace torpor::executor
