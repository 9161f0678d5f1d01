#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/controller/controller.h"
#include "tests/server/controller/fake_links.h"
#include "tests/server/controller/fake_loop.h"

namespace torpor::server {

// A controller with functions a, b, c (tokens "token-a", "token-a/x" of an instance x, ...; c keeps
// state) and, where there are
// several GPUs, pair, which uses two at a time; on fake GPUs of 64 MiB that reach each other, two
// behind each PCIe switch; everything on the test's thread. Executors answer what they are told
// unless `answers` says otherwise.
class ControllerHarness : public testing::Test {
 protected:
  static constexpr Bytes kChunk = 2 * kMiB;
  static constexpr Bytes kPool = 64 * kMiB;

  struct Executor {
    std::shared_ptr<FakeExecutorLink> link;
    std::uint64_t epoch = 0;
    std::map<std::uint64_t, std::uint64_t> leases;  // session -> lease
    std::set<std::uint64_t> sessions;
    std::set<std::uint64_t> resident;
    std::map<std::uint64_t, Bytes> reached;  // other GPUs' images: session -> live bytes
    std::set<std::uint64_t> sourced;         // resident, and came from another GPU
  };
  struct Client {
    std::shared_ptr<FakeSessionLink> link;
    wire::HelloReply hello;
    std::uint64_t next_request = 1;
  };
  struct Outcome {
    std::optional<absl::StatusOr<RequestGrant>> grant;
    std::optional<absl::Status> lost;
  };
  struct FakeProcesses final : ExecutorProcesses {
    void Kill(GpuIndex gpu, std::uint64_t epoch) override { killed.emplace_back(gpu, epoch); }
    void Replace(GpuIndex gpu, std::uint64_t epoch) override { replaced.emplace_back(gpu, epoch); }
    void Want(ExecutorSeat seat) override { wanted.push_back(seat); }
    void KeepSpare(GpuIndex gpu) override { with_spare.insert(gpu); }
    std::vector<std::pair<GpuIndex, std::uint64_t>> killed;
    std::vector<std::pair<GpuIndex, std::uint64_t>> replaced;
    std::vector<ExecutorSeat> wanted;
    std::set<GpuIndex> with_spare;
  };
  struct Counts final : Telemetry {
    void OnSwapIn(const SwapRecord& swap) override {
      ++swaps_in;
      if (swap.path == SwapPath::kNvlink) ++swaps_over_links;
    }
    void OnSwapOut(const SwapRecord&, WriteBackReason reason) override {
      reason == WriteBackReason::kIdle ? ++idle_write_backs : ++swaps_out;
    }
    void OnEviction(const std::string&, GpuIndex, EvictionReason) override { ++evictions; }
    void OnLeaseEnded(const std::string&, GpuIndex, Duration, bool) override { ++leases; }
    void OnExecutorLost(GpuIndex) override { ++losses; }
    void OnWrongToken() override { ++wrong_tokens; }
    int wrong_tokens = 0;
    int swaps_in = 0, swaps_out = 0, evictions = 0, leases = 0, losses = 0, idle_write_backs = 0;
    void OnSessionOutlived(OutlivedFate fate) override { ++outlived[fate]; }
    int swaps_over_links = 0;
    std::map<OutlivedFate, int> outlived;
  };

  // `configure` changes the configuration before the controller starts; null: no change.
  explicit ControllerHarness(int gpus = 1, AddressMode address_mode = AddressMode::kMap,
                             const std::function<void(Config&)>& configure = nullptr);

  static std::map<std::string, std::string> TokensOf(const Config& config);
  // Changes functions or tenants while the controller runs.
  void Reconfigure(const std::function<void(Config&)>& change);

  // torpord is killed, with its executors, and started again with `options_`.
  void RestartTorpord();

  // Whatever happened, a scheduler that is told the same decides the same.
  void TearDown() override;

  // Starts and registers the executor of a GPU; lets it answer everything.
  void StartExecutor(int gpu);
  void Register(int gpu);
  void KillExecutor(int gpu);
  // The client's work on GPU 0 loses the context. The executor lives until the test kills it.
  void LoseContext(const Client& client, std::int32_t cuda_error);
  // What the executor of the GPU says first.
  v1::ExecutorMessage Registration(int gpu, std::uint64_t epoch) const;
  // Lets executors answer, until nothing moves any more.
  void Settle();
  void Answer(Executor& executor, const v1::DaemonMessage& operation, const absl::Status& status);

  // From now on operations of one kind, has_swap_in or the like, are not answered, or refused.
  using Kind = bool (v1::DaemonMessage::*)() const;
  void Hold(Kind kind) { AnswerWith(kind, std::nullopt); }
  void Refuse(Kind kind, const absl::Status& why) { AnswerWith(kind, why); }

  // Hello returns a client after its Hello, Connect a client with an open session.
  Client Hello(const std::string& token);
  Client Connect(const std::string& token);
  // The same for a further device of the client's process.
  Client HelloForDevice(const std::string& token, const Client& first, int device);
  Client ConnectDevice(const std::string& token, const Client& first, int device);
  Client Open(Client client);
  template <typename Message>
  void Say(const Client& client, Message message) {
    controller_->OnSessionMessage(client.link, wire::ClientMessage(std::move(message)));
    Settle();
  }
  void Disconnect(const Client& client) {
    controller_->OnSessionClosed(client.link);
    Settle();
  }
  std::optional<wire::MemoryReply> Malloc(Client& client, Bytes bytes);
  std::optional<wire::MemoryReply> Free(Client& client, std::uint64_t address);

  // Waits for a GPU as a request of id request-N, N from 1.
  RequestId Acquire(const std::string& function, Duration patience = std::chrono::seconds(10));
  void Release(RequestId request, scheduler::Ending ending = scheduler::Ending::kAnswered) {
    controller_->Release(request, ending);
    Settle();
  }
  Outcome& outcome(RequestId request) { return outcomes_[request]; }
  bool IsRunning(RequestId request) {
    return outcomes_[request].grant && outcomes_[request].grant->ok() && !outcomes_[request].lost;
  }
  absl::StatusCode Failure(RequestId request) {
    return outcomes_[request].grant ? outcomes_[request].grant->status().code()
                                    : absl::StatusCode::kOk;
  }
  // Takes a grant and acknowledges it.
  std::optional<wire::LeaseGrant> TakeLease(const Client& client);
  // Takes a revocation and gives the lease back.
  bool GiveBack(const Client& client);
  // The copies of a swap-in that does not complete at once are done.
  void CompleteSwapIn(int gpu, const Client& client);
  // A whole request.
  void Serve(const std::string& function, const Client& client);

  void SayComplete(const Executor& executor, std::uint64_t session);
  void AnswerWith(Kind kind, const std::optional<absl::Status>& answer) {
    answers_ = [=](const v1::DaemonMessage& operation) {
      return (operation.*kind)() ? answer : std::optional(absl::OkStatus());
    };
  }

  Config config_;
  Controller::Options options_;
  std::string event_log_;
  FakeLoop loop_;
  Repository repository_;
  FakeProcesses processes_;
  Counts counts_;
  std::unique_ptr<Controller> controller_;
  std::map<int, Executor> executors_;
  std::map<RequestId, Outcome> outcomes_;
  // The answer to an operation; nothing: not yet. Default: OK.
  std::function<std::optional<absl::Status>(const v1::DaemonMessage&)> answers_;
  // What the answer to an operation tells besides.
  std::function<v1::Learned(const v1::DaemonMessage&)> learned_;
  // Whether a write-back of a part leaves some.
  std::function<bool(const v1::DaemonMessage&)> has_more_;
  bool completes_swap_ins_ = true;  // at once
  bool has_links_ = false;          // fast ones, between all GPUs
  std::uint64_t next_epoch_ = 1;
  std::uint64_t next_request_ = 1;
};

}  // namespace torpor::server
