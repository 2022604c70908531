#include "agent/telemetry/exporter.h"

#include <exception>

#include <prometheus/exposer.h>

#include "agent/telemetry/collector.h"

namespace labrack::telemetry {

Result<std::unique_ptr<Exporter>> Exporter::Open(const std::string& listen, Nanoseconds grace,
                                                 const AgentInfo& info, const Clock& clock) {
  std::unique_ptr<Exporter> exporter(new Exporter());
  exporter->collector_ = std::make_shared<Collector>(grace, info, clock);
  try {
    constexpr std::size_t kThreads = 1;
    exporter->exposer_ = std::make_unique<prometheus::Exposer>(listen, kThreads);
    exporter->exposer_->RegisterCollectable(exporter->collector_);
    const std::vector<int> ports = exporter->exposer_->GetListeningPorts();
    const std::string host = listen.substr(0, listen.rfind(':'));
    if (ports.empty()) return Fail(Errc::kBusy, listen, "does not listen");
    exporter->address_ = host + ":" + std::to_string(ports.front());
  } catch (const std::exception& error) {
    return Fail(Errc::kBusy, listen,
                std::string("metrics cannot be served there: ") + error.what() +
                    "; set `metrics_listen` to a free address, or to 127.0.0.1:0");
  }
  return exporter;
}

Exporter::~Exporter() = default;

void Exporter::SetFigures(const AgentFigures& figures) { collector_->SetFigures(figures); }

void Exporter::TrialBegan(const v1::AssignmentSpec& spec) { collector_->TrialBegan(spec); }

void Exporter::PhaseBegan(const v1::AssignmentSpec& spec, v1::PhaseKind phase, Nanoseconds wall) {
  collector_->PhaseBegan(spec, phase, wall);
}

void Exporter::StepRuns(const v1::AssignmentSpec& spec,
                        const std::vector<v1::OperationResult>& operations) {
  collector_->StepRuns(spec, operations);
}

void Exporter::StepDone(const v1::AssignmentSpec& spec, const v1::StepResult& step) {
  collector_->StepDone(spec, step);
}

void Exporter::TrialEnded(const v1::AssignmentSpec& spec, v1::Outcome outcome) {
  collector_->TrialEnded(spec, outcome);
}

}  // namespace labrack::telemetry
