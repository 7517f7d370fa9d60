// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging keeps the content of requests and responses of clients out of the logs of our programs.
//
// From verbosity 8 on, client-go logs the content of each request and response, including private keys, tokens and kubeconfigs. Every client and
// every library first checks whether the logger is enabled at that level, so the logger of the process is the one place that none of them bypasses.
package logging

import (
	"errors"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// MaxVerbosity is the maximum verbosity: it includes requests with their headers and results, without their content.
const MaxVerbosity = 7

// Apply applies the configuration of the log to the whole process, with the limit. It must be called once, before anything is logged.
func Apply(config *logsapi.LoggingConfiguration, gates featuregate.FeatureGate) error {
	switch {
	case !gates.Enabled(logsapi.ContextualLogging):
		return errors.New("the feature gate ContextualLogging must not be off: otherwise messages above the limit of verbosity are logged")
	case config.Options.Text.InfoBufferSize.Value() != 0:
		return errors.New("--log-text-info-buffer-size is not supported: it must be 0")
	}
	if err := logsapi.ValidateAndApply(config, gates); err != nil {
		return err
	}
	logger := klog.Background()
	if _, done := logger.GetSink().(limited); done {
		return nil // the same configuration again, which tests allow
	}
	options := []klog.LoggerOption{klog.ContextualLogger(true)}
	if plain, ok := logger.GetSink().(textlogger.KlogBufferWriter); ok {
		options = append(options, klog.WriteKlogBuffer(plain.WriteKlogBuffer))
	}
	logger = Limit(logger)
	klog.SetLoggerWithOptions(logger, options...)
	slog.SetDefault(slog.New(logr.ToSlogHandler(logger)))
	if config.Verbosity > MaxVerbosity {
		logger.Info("Limiting the verbosity: the content of requests, which is logged from 8 on, can contain keys and tokens",
			"verbosity", MaxVerbosity, "asked", uint32(config.Verbosity))
	}
	return nil
}

// Limit returns a logger with a verbosity of at most MaxVerbosity, even if the verbosity is raised later.
func Limit(logger logr.Logger) logr.Logger {
	return logger.WithSink(withDepth(logger.GetSink(), 1))
}

// limited is a sink that wraps another one.
type limited struct{ to logr.LogSink }

var _ logr.CallDepthLogSink = limited{}

// withDepth returns a limited sink that reports a caller further up as the source of a line.
func withDepth(to logr.LogSink, depth int) logr.LogSink {
	if callers, ok := to.(logr.CallDepthLogSink); ok {
		to = callers.WithCallDepth(depth)
	}
	return limited{to}
}

func (l limited) Init(info logr.RuntimeInfo) { l.to.Init(info) }

func (l limited) Enabled(level int) bool { return level <= MaxVerbosity && l.to.Enabled(level) }

func (l limited) Info(level int, msg string, kv ...any) { l.to.Info(level, msg, kv...) }

func (l limited) Error(err error, msg string, kv ...any) { l.to.Error(err, msg, kv...) }

func (l limited) WithValues(kv ...any) logr.LogSink { return limited{l.to.WithValues(kv...)} }

func (l limited) WithName(name string) logr.LogSink { return limited{l.to.WithName(name)} }

func (l limited) WithCallDepth(depth int) logr.LogSink { return withDepth(l.to, depth) }
