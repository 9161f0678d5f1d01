#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "scheduler/scheduler.h"

// Names of events and actions in a log, and of the fields: VisitFields calls `visit(name, field)`
// for every field in order. One description serves writing and reading.
namespace torpor::scheduler {

template <typename T>
inline constexpr std::string_view kNameOf = "";
template <>
inline constexpr std::string_view kNameOf<ExecutorUp> = "executor_up";
template <>
inline constexpr std::string_view kNameOf<ExecutorDown> = "executor_down";
template <>
inline constexpr std::string_view kNameOf<ImagesLost> = "images_lost";
template <>
inline constexpr std::string_view kNameOf<InstancesServed> = "instances_served";
template <>
inline constexpr std::string_view kNameOf<TenantSet> = "tenant_set";
template <>
inline constexpr std::string_view kNameOf<FunctionSet> = "function_set";
template <>
inline constexpr std::string_view kNameOf<InstanceAdded> = "instance_added";
template <>
inline constexpr std::string_view kNameOf<HealthChanged> = "health_changed";
template <>
inline constexpr std::string_view kNameOf<InstanceRemoved> = "instance_removed";
template <>
inline constexpr std::string_view kNameOf<FunctionRemoved> = "function_removed";
template <>
inline constexpr std::string_view kNameOf<RequestArrived> = "request_arrived";
template <>
inline constexpr std::string_view kNameOf<RequestGone> = "request_gone";
template <>
inline constexpr std::string_view kNameOf<SwapInDone> = "swap_in_done";
template <>
inline constexpr std::string_view kNameOf<ImageArrived> = "image_arrived";
template <>
inline constexpr std::string_view kNameOf<SwapOutDone> = "swap_out_done";
template <>
inline constexpr std::string_view kNameOf<WriteBackDone> = "write_back_done";
template <>
inline constexpr std::string_view kNameOf<LeaseEnded> = "lease_ended";
template <>
inline constexpr std::string_view kNameOf<GrowthWanted> = "growth_wanted";
template <>
inline constexpr std::string_view kNameOf<ImageShrunk> = "image_shrunk";
template <>
inline constexpr std::string_view kNameOf<LoadWanted> = "load_wanted";
template <>
inline constexpr std::string_view kNameOf<EvictionWanted> = "eviction_wanted";
template <>
inline constexpr std::string_view kNameOf<ImagesUnwanted> = "images_unwanted";
template <>
inline constexpr std::string_view kNameOf<PinChanged> = "pin_changed";
template <>
inline constexpr std::string_view kNameOf<ImageSpilled> = "image_spilled";
template <>
inline constexpr std::string_view kNameOf<TimePassed> = "time_passed";
template <>
inline constexpr std::string_view kNameOf<SwapIn> = "swap_in";
template <>
inline constexpr std::string_view kNameOf<SwapOut> = "swap_out";
template <>
inline constexpr std::string_view kNameOf<WriteBack> = "write_back";
template <>
inline constexpr std::string_view kNameOf<Grant> = "grant";
template <>
inline constexpr std::string_view kNameOf<Revoke> = "revoke";
template <>
inline constexpr std::string_view kNameOf<Refuse> = "refuse";
template <>
inline constexpr std::string_view kNameOf<AllowGrowth> = "allow_growth";
template <>
inline constexpr std::string_view kNameOf<RefuseGrowth> = "refuse_growth";
template <>
inline constexpr std::string_view kNameOf<WakeUp> = "wake_up";
template <>
inline constexpr std::string_view kNameOf<RefuseLoad> = "refuse_load";

// Words for the values of an enumeration, in their order.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> kWordsOf = {};
template <>
inline constexpr std::array<std::string_view, 4> kWordsOf<Health> = {"serving", "unproven", "down",
                                                                     "leaving"};
template <>
inline constexpr std::array<std::string_view, 4> kWordsOf<SwapOutReason> = {
    "memory_full", "move", "requested", "keep_alive_over"};
template <>
inline constexpr std::array<std::string_view, 4> kWordsOf<Ending> = {"answered", "failed",
                                                                     "cancelled", "lost"};
template <>
inline constexpr std::array<std::string_view, 5> kWordsOf<Refusal> = {
    "too_large", "swap_failed", "no_room", "queue_full", "too_late"};
template <>
inline constexpr std::array<std::string_view, 6> kWordsOf<LoadRefusal> = {
    "no_gpu", "too_few_gpus", "too_large", "no_room", "in_use", "swap_failed"};
template <>
inline constexpr std::array<std::string_view, 3> kWordsOf<TooLate> = {"serve", "serve_last",
                                                                      "refuse"};

template <typename Enum>
constexpr std::string_view WordOf(Enum value) {
  return kWordsOf<Enum>[static_cast<std::size_t>(value)];
}

// `Self` is const where the fields are only read.
template <typename Self, typename T>
concept Of = std::same_as<std::remove_const_t<Self>, T>;

template <Of<SchedulerOptions> Self, typename Visit>
void VisitFields(Self& options, const Visit& visit) {
  visit("implicit_quantum_for_request", options.implicit_quantum_for_request);
  visit("implicit_quantum", options.implicit_quantum);
  visit("idle_write_back", options.idle_write_back);
  visit("evicts", options.evicts);
  visit("swaps_from_peers", options.swaps_from_peers);
  visit("too_late", options.too_late);
  visit("max_waiting", options.max_waiting);
  visit("alpha_start", options.constants.alpha_start);
  visit("alpha_period", options.constants.alpha_period);
  visit("heavy_ratio", options.constants.heavy_ratio);
  visit("outcome_window", options.constants.outcome_window);
}

template <Of<ExecutorUp> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("gpu", event.gpu);
  visit("capacity", event.capacity);
  visit("sources", event.sources);
  visit("pcie_switch", event.pcie_switch);
}
template <Of<ExecutorDown> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("gpu", event.gpu);
}
template <Of<ImagesLost> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("gpu", event.gpu);
  visit("instances", event.instances);
}
template <Of<InstancesServed> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("gpu", event.gpu);
  visit("instances", event.instances);
}
template <Of<TenantSet> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("tenant", event.tenant);
  visit("weight", event.weight);
}
template <Of<FunctionSet> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("function", event.function);
  visit("deadline", event.objective.deadline);
  visit("percentile", event.objective.percentile);
  visit("priority", event.priority);
  visit("max_waiting", event.max_waiting);
  visit("tenant", event.tenant);
  visit("keep_alive", event.keep_alive);
}
template <Of<InstanceAdded> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("max_in_flight", event.max_in_flight);
  visit("secondary_shards", event.secondary_shards);
  visit("function", event.function);
  visit("keeps_replicas", event.keeps_replicas);
  visit("is_constant", event.is_constant);
}
template <Of<HealthChanged> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("health", event.health);
}
template <Of<InstanceRemoved> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
}
template <Of<FunctionRemoved> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("function", event.function);
}
template <Of<RequestArrived> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("request", event.request);
  visit("instance", event.instance);
  visit("deadline", event.deadline);
  visit("is_implicit", event.is_implicit);
  visit("function", event.function);
  visit("arrival", event.arrival);
}
template <Of<RequestGone> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("request", event.request);
  visit("ending", event.ending);
}
template <Of<SwapInDone> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("gpu", event.gpu);
  visit("ok", event.ok);
}
template <Of<ImageArrived> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("gpu", event.gpu);
}
template <Of<SwapOutDone> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("gpu", event.gpu);
}
template <Of<WriteBackDone> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("gpu", event.gpu);
  visit("is_clean", event.is_clean);
}
template <Of<LeaseEnded> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
}
template <Of<GrowthWanted> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("growth", event.growth);
  visit("instance", event.instance);
  visit("bytes", event.bytes);
}
template <Of<ImageShrunk> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("bytes", event.bytes);
}
template <Of<LoadWanted> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("gpu", event.gpu);
}
template <Of<EvictionWanted> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
}
template <Of<ImagesUnwanted> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("gpu", event.gpu);
  visit("instances", event.instances);
}
template <Of<PinChanged> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("is_pinned", event.is_pinned);
}
template <Of<ImageSpilled> Self, typename Visit>
void VisitFields(Self& event, const Visit& visit) {
  visit("instance", event.instance);
  visit("is_on_disk", event.is_on_disk);
}
template <Of<TimePassed> Self, typename Visit>
void VisitFields(Self&, const Visit&) {}

template <Of<SwapIn> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("instance", action.instance);
  visit("gpu", action.gpu);
  visit("source", action.source);
  visit("keeps_source", action.keeps_source);
}
template <Of<SwapOut> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("instance", action.instance);
  visit("gpu", action.gpu);
  visit("reason", action.reason);
}
template <Of<WriteBack> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("instance", action.instance);
  visit("gpu", action.gpu);
}
template <Of<Grant> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("request", action.request);
  visit("instance", action.instance);
  visit("gpu", action.gpu);
  visit("joins", action.joins);
  visit("secondary_gpus", action.secondary_gpus);
}
template <Of<Revoke> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("instance", action.instance);
}
template <Of<Refuse> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("request", action.request);
  visit("reason", action.reason);
}
template <Of<AllowGrowth> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("growth", action.growth);
}
template <Of<RefuseGrowth> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("growth", action.growth);
}
template <Of<WakeUp> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("when", action.when);
}
template <Of<RefuseLoad> Self, typename Visit>
void VisitFields(Self& action, const Visit& visit) {
  visit("instance", action.instance);
  visit("reason", action.reason);
}

}  // namespace torpor::scheduler
