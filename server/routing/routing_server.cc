#include "server/routing/routing_server.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mailbox.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread_name.h"
#include "proto/torpor/v1/router.grpc.pb.h"
#include "server/broker/function_messages.h"
#include "server/routing/batch_queue.h"
#include "server/routing/protocol.h"
#include "server/routing/routed_requests.h"
#include "server/unix_socket/grpc_server.h"

namespace torpor::server {
namespace {

constexpr std::size_t kMaxInquiries = 1024;

class RouterStream;

// Parts of the server for its streams.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  virtual void OnMessage(const std::shared_ptr<RouterStream>& stream,
                         const v1::RouterMessage& message) = 0;
  virtual void OnEnd(const std::shared_ptr<RouterStream>& stream) = 0;
};

// One stream of a router. Messages are handled one at a time. Keeps itself alive until gRPC is done
// with it.
class RouterStream final : public grpc::ServerBidiReactor<v1::RouterBatch, v1::TorpordBatch>,
                           public RouterLink {
 public:
  explicit RouterStream(StreamListener& listener) : listener_(listener) {}

  void Start(std::shared_ptr<RouterStream> self, grpc::CallbackServerContext* context) {
    MutexLock lock(&mutex_);
    self_ = std::move(self);
    context_ = context;
    StartRead(&incoming_);
  }

  void Send(v1::TorpordMessage message) override {
    MutexLock lock(&mutex_);
    if (is_finished_) return;
    // The router does not read any more. TryCancel never calls back from inside.
    if (queue_.IsFull()) return context_->TryCancel();
    if (queue_.Add(std::move(message))) StartWrite(&queue_.batch());
  }

  void Refuse(const std::string& reason) override {
    MutexLock lock(&mutex_);
    FinishLocked({grpc::StatusCode::FAILED_PRECONDITION, reason});
  }

  void Cut() override {
    MutexLock lock(&mutex_);
    if (!is_finished_) context_->TryCancel();
  }

  // The requests of the stream and its router's process, from its hello on. For the listener, which
  // uses them in OnMessage and OnEnd only.
  std::unique_ptr<RoutedRequests> requests;
  std::int64_t pid = 0;

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {  // the router has closed
      MutexLock lock(&mutex_);
      return FinishLocked(grpc::Status::OK);
    }
    const std::shared_ptr<RouterStream> self = SelfNow();
    for (const v1::RouterMessage& message : incoming_.messages()) {
      listener_.OnMessage(self, message);
    }
    MutexLock lock(&mutex_);
    if (!is_finished_) StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    if (is_finished_) return;
    if (!ok) return FinishLocked(grpc::Status::CANCELLED);
    if (queue_.OnWritten()) StartWrite(&queue_.batch());
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    FinishLocked(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    const std::shared_ptr<RouterStream> self = TakeSelf();
    listener_.OnEnd(self);
  }

  std::shared_ptr<RouterStream> SelfNow() {
    MutexLock lock(&mutex_);
    return self_;
  }
  std::shared_ptr<RouterStream> TakeSelf() {
    MutexLock lock(&mutex_);
    return std::move(self_);
  }

  void FinishLocked(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(is_finished_, true)) return;
    Finish(status);
  }

  StreamListener& listener_;
  v1::RouterBatch incoming_;
  Mutex mutex_;
  std::shared_ptr<RouterStream> self_ ABSL_GUARDED_BY(mutex_);
  grpc::CallbackServerContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // valid until OnDone
  BatchQueue<v1::TorpordBatch, v1::TorpordMessage> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class GrpcRoutingServer final : public RoutingServer,
                                private StreamListener,
                                private v1::Routing::CallbackService {
 public:
  explicit GrpcRoutingServer(Parts parts)
      : parts_(std::move(parts)),
        functions_(std::move(parts_.functions)),
        inquiries_(kMaxInquiries),
        answering_([this] { AnswerInquiries(); }) {}

  ~GrpcRoutingServer() override {
    if (const std::shared_ptr<RouterStream> stream = current()) stream->Cut();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    inquiries_.Close();
    answering_.join();
    server_.reset();
  }

  absl::Status Serve(const std::string& path) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(static_cast<v1::Routing::CallbackService*>(this));
    TORPOR_ASSIGN_OR_RETURN(server_, UnixGrpcServer::Start(builder, path, {}));
    return absl::OkStatus();
  }

  void SetFunctions(std::map<std::string, FunctionConfig> functions) override {
    MutexLock lock(&mutex_);
    functions_ = std::move(functions);
    if (current_ == nullptr) return;
    v1::TorpordMessage message;
    *message.mutable_functions() = ToMessage(functions_);
    current_->Send(std::move(message));
  }

  void Pause() override { *is_paused_ = true; }

 private:
  using Inquiry = std::pair<std::shared_ptr<RouterLink>, v1::RouterMessage::Inquiry>;

  grpc::ServerBidiReactor<v1::RouterBatch, v1::TorpordBatch>* Attach(
      grpc::CallbackServerContext* context) override {
    const auto stream = std::make_shared<RouterStream>(static_cast<StreamListener&>(*this));
    stream->Start(stream, context);
    return stream.get();
  }

  void OnMessage(const std::shared_ptr<RouterStream>& stream,
                 const v1::RouterMessage& message) override {
    if (message.has_hello()) return Welcome(stream, message.hello());
    if (stream->requests == nullptr) return stream->Refuse("a stream begins with a hello");
    switch (message.kind_case()) {
      case v1::RouterMessage::kHolding:
        return stream->requests->OnMessage(message.holding());
      case v1::RouterMessage::kAcquire:
        return stream->requests->OnMessage(message.acquire());
      case v1::RouterMessage::kConfirm:
        return stream->requests->OnMessage(message.confirm());
      case v1::RouterMessage::kAskAgain:
        return stream->requests->OnMessage(message.ask_again());
      case v1::RouterMessage::kRelease:
        return stream->requests->OnMessage(message.release());
      case v1::RouterMessage::kInquiry:
        inquiries_.Send({stream, message.inquiry()});
        return;
      case v1::RouterMessage::kAlive:
        return parts_.on_alive(stream->pid);
      case v1::RouterMessage::kHello:
      case v1::RouterMessage::KIND_NOT_SET:
        return;
    }
  }

  void Welcome(const std::shared_ptr<RouterStream>& stream, const v1::RouterMessage::Hello& hello) {
    std::string refusal;
    if (hello.protocol() != kRoutingProtocol) {
      refusal = absl::StrCat("a router of version ", hello.version(),
                             " speaks another protocol than this torpord");
    } else {
      refusal = parts_.find_refusal(hello);
    }
    if (!refusal.empty()) return stream->Refuse(refusal);
    stream->requests = std::make_unique<RoutedRequests>(*parts_.broker, stream, is_paused_);
    stream->pid = hello.pid();
    v1::TorpordMessage message;
    message.mutable_welcome()->set_settings(parts_.settings);
    {
      MutexLock lock(&mutex_);
      // A router that comes again has left its earlier stream, though this end may not know yet.
      if (current_ != nullptr) current_->Cut();
      current_ = stream;
      *message.mutable_welcome()->mutable_functions() = ToMessage(functions_);
      stream->Send(std::move(message));
    }
    parts_.on_attached(hello);
  }

  void OnEnd(const std::shared_ptr<RouterStream>& stream) override {
    {
      MutexLock lock(&mutex_);
      if (current_ == stream) current_ = nullptr;
    }
    if (stream->requests == nullptr) return;
    const std::size_t released = stream->requests->ReleaseAll();
    stream->requests = nullptr;  // which shares the stream
    if (released > 0) {
      spdlog::warn("the router has gone; {} of its requests are cancelled", released);
    }
  }

  void AnswerInquiries() {
    NameThread("inquiries");
    while (const std::optional<Inquiry> inquiry = inquiries_.Receive()) {
      const auto& [link, question] = *inquiry;
      v1::TorpordMessage message;
      v1::TorpordMessage::Answer& answer = *message.mutable_answer();
      answer.set_inquiry_id(question.inquiry_id());
      if (question.subject() == v1::RouterMessage::Inquiry::METRICS) {
        answer.set_is_ready(true);
        answer.set_text(parts_.metrics());
      } else {
        Readiness readiness = parts_.readiness(question.function());
        answer.set_is_ready(readiness.is_ready);
        answer.set_text(std::move(readiness.reason));
        for (std::string& upstream : readiness.upstreams) {
          answer.add_upstreams(std::move(upstream));
        }
      }
      link->Send(std::move(message));
    }
  }

  std::shared_ptr<RouterStream> current() {
    MutexLock lock(&mutex_);
    return current_;
  }

  Parts parts_;
  const std::shared_ptr<std::atomic<bool>> is_paused_ = std::make_shared<std::atomic<bool>>(false);
  Mutex mutex_;
  std::map<std::string, FunctionConfig> functions_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RouterStream> current_ ABSL_GUARDED_BY(mutex_);
  Mailbox<Inquiry> inquiries_;
  std::thread answering_;
  std::unique_ptr<UnixGrpcServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RoutingServer>> RoutingServer::Start(const std::string& path,
                                                                    Parts parts) {
  auto server = std::make_unique<GrpcRoutingServer>(std::move(parts));
  TORPOR_RETURN_IF_ERROR(server->Serve(path));
  return server;
}

}  // namespace torpor::server
