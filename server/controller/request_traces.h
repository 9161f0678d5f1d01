#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/scheduler.h"
#include "server/broker/request_broker.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/task_loop.h"
#include "server/controller/request_history.h"
#include "server/controller/request_trace.h"

namespace torpor::server {

// Traces of the router's requests: of all live ones and of the last finished ones. On the
// controller's thread.
class RequestTraces {
 public:
  // Keeps `max_finished` traces of finished requests, under a kilobyte each. The arguments must
  // outlive the object.
  RequestTraces(const InstanceTable& instances, const scheduler::Scheduler& scheduler,
                TaskLoop& loop, std::size_t max_finished)
      : instances_(instances), scheduler_(scheduler), loop_(loop), finished_(max_finished) {}

  // The request has arrived, at `arrival`. Call before the scheduler hears of the request.
  void Begin(RequestId request, const RequestBroker::Demand& demand, TimePoint arrival,
             const RegisteredFunction& function);
  // The request joins a running lease of its instance.
  void Join(RequestId request);
  // The request runs under the instance's lease. Returns the time of the scheduler's decision.
  TimePoint Grant(RequestId request, const FunctionInstance& instance);
  // The request waits again after a grant.
  void Restart(RequestId request);
  // The request is over; `why` is the reason for no answer, else empty.
  void End(RequestId request, scheduler::Ending ending, const std::string& why);

  // Returns the trace of the newest request named `caller_id`. NotFound if no live or remembered
  // request has the name.
  absl::StatusOr<RequestTrace> Explain(const std::string& caller_id) const;

 private:
  struct Live {
    const RegisteredFunction* function = nullptr;
    InstanceId instance;  // of the grant; unset before
    RequestTrace trace;
  };

  // Returns the instance that the request was granted or waits for; of a refused request, the
  // function's first.
  InstanceId InstanceOf(RequestId request, const Live& live) const;

  // Notes the request's delays until the scheduler's decision, or until now.
  void NoteDelay(RequestId request, Live& live) const;
  static Duration WaitForOwnLease(const RequestTrace& trace, const scheduler::Instance& placed,
                                  const scheduler::Wait& wait, TimePoint until);
  // Adds the counts of requests that got GPUs first.
  RequestTrace WithOthers(RequestTrace trace) const;

  const InstanceTable& instances_;
  const scheduler::Scheduler& scheduler_;
  TaskLoop& loop_;
  std::map<RequestId, Live> live_;
  RequestHistory finished_;
};

}  // namespace torpor::server
