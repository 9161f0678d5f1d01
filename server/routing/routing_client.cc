#include "server/routing/routing_client.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread_name.h"
#include "proto/torpor/v1/router.grpc.pb.h"
#include "server/routing/batch_queue.h"

namespace torpor::server {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(20);
constexpr Duration kLongestPause = std::chrono::milliseconds(200);
// How often requests whose time is over are looked for, and torpord hears that the router's loop
// turns.
constexpr Duration kTick = std::chrono::milliseconds(500);
// For torpord to read the last messages of a router that ends.
constexpr Duration kFinishGrace = std::chrono::milliseconds(500);

std::unique_ptr<v1::Routing::Stub> Dial(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // The client paces its tries itself: no try learns an earlier result.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Routing::NewStub(grpc::CreateCustomChannel(
      "unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments));
}

// How a stream has ended, once it has. Outlives the stream.
struct StreamEnd {
  // Waits for the end; nullopt at `until`.
  std::optional<grpc::Status> Wait(TimePoint until) {
    MutexLock lock(&mutex);
    while (!status) {
      const Duration left = until - SteadyClock().Now();
      if (left <= Duration::zero()) break;
      mutex.WaitFor(is_there, absl::FromChrono(left));
    }
    return status;
  }

  Mutex mutex;
  absl::CondVar is_there;
  std::optional<grpc::Status> status ABSL_GUARDED_BY(mutex);
};

// One stream to torpord. Must not be destroyed on a thread of gRPC's: with the last channel go
// gRPC's threads, which are joined.
class Stream final : public grpc::ClientBidiReactor<v1::RouterBatch, v1::TorpordBatch>,
                     public TorpordLink {
 public:
  using OnBatch = std::function<void(const v1::TorpordBatch&)>;

  Stream(const std::string& socket_path, OnBatch on_batch)
      : stub_(Dial(socket_path)), on_batch_(std::move(on_batch)) {}

  // Keep the stream alive until its end is there.
  void Start(const v1::RouterMessage::Hello& hello) {
    stub_->async()->Attach(&context_, this);
    AddHold();  // for writes from outside of reactions
    StartRead(&incoming_);
    v1::RouterMessage message;
    *message.mutable_hello() = hello;
    Send(std::move(message));
    StartCall();
  }

  void Send(v1::RouterMessage message) override {
    MutexLock lock(&mutex_);
    if (has_ended_ || is_finishing_) return;
    // torpord does not read: what it does not know yet it will hear on the next stream.
    if (queue_.IsFull()) return context_.TryCancel();
    if (queue_.Add(std::move(message))) StartWrite(&queue_.batch());
  }

  // Ends the stream after what was sent; torpord ends it, too, or Cancel does. At most once.
  void Finish() {
    MutexLock lock(&mutex_);
    is_finishing_ = true;
    if (!has_ended_ && !queue_.is_writing()) StartWritesDone();
  }
  void Cancel() { context_.TryCancel(); }

  const std::shared_ptr<StreamEnd>& end() const { return end_; }

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      on_batch_(incoming_);
      StartRead(&incoming_);
      return;
    }
    {
      MutexLock lock(&mutex_);
      has_ended_ = true;
    }
    RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    if (!ok || has_ended_) return;
    if (queue_.OnWritten()) return StartWrite(&queue_.batch());
    if (is_finishing_) StartWritesDone();
  }

  void OnDone(const grpc::Status& status) override {
    // The stream may be destroyed as soon as its end is there.
    const std::shared_ptr<StreamEnd> end = end_;
    MutexLock lock(&end->mutex);
    end->status = status;
    end->is_there.SignalAll();
  }

  const std::unique_ptr<v1::Routing::Stub> stub_;
  const OnBatch on_batch_;
  const std::shared_ptr<StreamEnd> end_ = std::make_shared<StreamEnd>();
  grpc::ClientContext context_;
  v1::TorpordBatch incoming_;
  Mutex mutex_;
  BatchQueue<v1::RouterBatch, v1::RouterMessage> queue_ ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finishing_ ABSL_GUARDED_BY(mutex_) = false;
};

class GrpcRoutingClient final : public RoutingClient {
 public:
  GrpcRoutingClient(std::string socket_path, Parts parts)
      : socket_path_(std::move(socket_path)),
        parts_(std::move(parts)),
        thread_([this] { Run(); }) {}

  ~GrpcRoutingClient() override {
    {
      MutexLock lock(&mutex_);
      is_stopping_ = true;
      changed_.SignalAll();
      if (stream_) stream_->Finish();
    }
    thread_.join();
  }

 private:
  void Run() {
    NameThread("torpord-link");
    Duration pause = kFirstPause;
    while (!IsStopping()) {
      if (const std::string why = FindWhyUnwanted(); !why.empty()) {
        return parts_.on_unwanted(why);
      }
      const auto stream = std::make_shared<Stream>(socket_path_, [this](const auto& batch) {
        for (const v1::TorpordMessage& message : batch.messages()) Handle(message);
      });
      {
        // Until it has begun: the welcome is handled, and the stream finished, afterwards.
        MutexLock lock(&mutex_);
        if (is_stopping_) return;
        stream_ = stream;
        stream->Start(parts_.hello);
      }
      const grpc::Status ended = WaitFor(*stream);
      if (Detach()) pause = kFirstPause;
      if (ended.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
        return parts_.on_unwanted(ended.error_message());
      }
      Pause(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  // Nobody can come back where the folder has gone.
  std::string FindWhyUnwanted() const {
    const std::string folder = std::filesystem::path(socket_path_).parent_path();
    if (access(folder.c_str(), F_OK) == 0 || errno != ENOENT) return "";
    return "the folder " + folder + " has gone";
  }

  grpc::Status WaitFor(Stream& stream) {
    std::optional<TimePoint> cancel_at;
    while (true) {
      if (const auto ended = stream.end()->Wait(SteadyClock().Now() + kTick)) return *ended;
      parts_.broker->Expire();
      parts_.inquiry->Expire();
      TellAlive(stream);
      if (!IsStopping()) continue;
      if (!cancel_at) cancel_at = SteadyClock().Now() + kFinishGrace;
      if (SteadyClock().Now() >= *cancel_at) stream.Cancel();
    }
  }

  void TellAlive(Stream& stream) {
    {
      MutexLock lock(&mutex_);
      if (!is_attached_) return;
    }
    if (!parts_.is_turning()) return;
    v1::RouterMessage message;
    message.mutable_alive();
    stream.Send(std::move(message));
  }

  void Handle(const v1::TorpordMessage& message) {
    switch (message.kind_case()) {
      case v1::TorpordMessage::kWelcome:
        return Attach(message.welcome());
      case v1::TorpordMessage::kFunctions:
        return parts_.on_functions(message.functions());
      case v1::TorpordMessage::kGrant:
        return parts_.broker->OnMessage(message.grant());
      case v1::TorpordMessage::kRefusal:
        return parts_.broker->OnMessage(message.refusal());
      case v1::TorpordMessage::kLost:
        return parts_.broker->OnMessage(message.lost());
      case v1::TorpordMessage::kConfirmed:
        return parts_.broker->OnMessage(message.confirmed());
      case v1::TorpordMessage::kAnswer:
        return parts_.inquiry->OnMessage(message.answer());
      case v1::TorpordMessage::KIND_NOT_SET:
        return;
    }
  }

  void Attach(const v1::TorpordMessage::Welcome& welcome) {
    std::shared_ptr<Stream> stream;
    {
      MutexLock lock(&mutex_);
      stream = stream_;
      is_attached_ = true;
    }
    parts_.on_welcome(welcome);
    parts_.broker->Attach(stream);
    parts_.inquiry->Attach(stream);
    parts_.on_attached(true);
    TellAlive(*stream);
    spdlog::info("torpord is there");
  }

  // Returns whether the stream had been welcomed.
  bool Detach() {
    {
      MutexLock lock(&mutex_);
      stream_ = nullptr;
      if (!std::exchange(is_attached_, false)) return false;
    }
    parts_.broker->Detach();
    parts_.inquiry->Detach();
    parts_.on_attached(false);
    if (!IsStopping()) spdlog::warn("torpord has gone; requests wait until it is there again");
    return true;
  }

  void Pause(Duration pause) {
    {
      MutexLock lock(&mutex_);
      if (!is_stopping_) mutex_.WaitFor(changed_, absl::FromChrono(pause));
    }
    parts_.broker->Expire();
    parts_.inquiry->Expire();
  }

  bool IsStopping() {
    MutexLock lock(&mutex_);
    return is_stopping_;
  }

  const std::string socket_path_;
  const Parts parts_;
  Mutex mutex_;
  absl::CondVar changed_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_attached_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<RoutingClient> RoutingClient::Start(const std::string& socket_path, Parts parts) {
  return std::make_unique<GrpcRoutingClient>(socket_path, std::move(parts));
}

}  // namespace torpor::server
