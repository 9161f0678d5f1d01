#pragma once

#include <map>
#include <string>
#include <vector>

namespace torpor::e2e {

// The answer of the HTTP server at `address` (host:port) to a GET, head included. A failure of the
// connection ends the process.
std::string ReadPage(const std::string& address, const std::string& path);

// What torpord's metrics server at `address` (host:port) shows now. A failure ends the process.
std::string ReadMetrics(const std::string& address);

// The sum of those of a metric's series in such a page that have all of the labels, each written as
// there: direction="in".
double ValueOf(const std::string& page, const std::string& metric,
               const std::vector<std::string>& labels);

// The values of the metric's series that have this label, by the label's value.
std::map<std::string, double> ValuesBy(const std::string& page, const std::string& metric,
                                       const std::string& label);

}  // namespace torpor::e2e
