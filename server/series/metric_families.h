#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

// Families of series, as torpord and its router register them. The registry must outlive a family.
namespace torpor::server {

// Bounds of a histogram of seconds: from a resident kernel's half millisecond to a queue that times
// out.
const prometheus::Histogram::BucketBoundaries& SecondsBuckets();

prometheus::Family<prometheus::Counter>& AddCounter(prometheus::Registry& registry,
                                                    const char* name, const char* help);
prometheus::Family<prometheus::Gauge>& AddGauge(prometheus::Registry& registry, const char* name,
                                                const char* help);
prometheus::Family<prometheus::Histogram>& AddHistogram(prometheus::Registry& registry,
                                                        const char* name, const char* help);

}  // namespace torpor::server
