// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

var session = Session{Random: func() float64 { return 0 }}

// until returns a task that runs until the session is over, and then records that it has ended.
func until(ended *bool) Task {
	return Task{Name: "waiting", Run: func(ctx context.Context, _ Session) error {
		<-ctx.Done()
		time.Sleep(time.Second)
		*ended = true
		return ctx.Err()
	}}
}

func logging(ctx context.Context) (context.Context, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out)))), out
}

func TestRun_EndsWithContextAfterAllTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(why) })
		var first, second bool
		if err := session.Run(ctx, []Task{until(&first), until(&second)}); !errors.Is(err, why) || !first || !second {
			t.Errorf("got %v, and the tasks have ended: %t, %t", err, first, second)
		}
	})
}

func TestRun_EndsWhenTaskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the identity is lost")
		for _, c := range []struct{ err, want error }{{Over(why), why}, {Over(nil), nil}} {
			var ended bool
			err := session.Run(t.Context(), []Task{until(&ended), {Name: "ending", Run: func(context.Context, Session) error {
				time.Sleep(time.Minute)
				return c.err
			}}})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || !ended {
				t.Errorf("got %v, want %v; the other task has ended: %t", err, c.want, ended)
			}
		}
	})
}

func TestRun_RestartsFailingTask(t *testing.T) {
	for name, fail := range map[string]func() error{
		"by an error": func() error { return errors.New("no such right") },
		"by a panic":  func() error { panic("no such right") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, out := logging(t.Context())
				ctx, cancel := context.WithTimeout(ctx, time.Hour-time.Second)
				defer cancel()
				failed, went, ended := 0, 0, false
				_ = session.Run(ctx, []Task{
					{Name: "delivering works", Run: func(context.Context, Session) error { failed++; return fail() }},
					{Name: "renewing the lease", Run: func(ctx context.Context, s Session) error {
						return (&Loop{What: "renewing", Do: func(context.Context) error { went++; return nil }, Random: s.Random,
							Interval: func() time.Duration { return time.Minute }, Timeout: time.Second}).Run(ctx)
					}},
					until(&ended),
				})
				if went != 60 || !ended {
					t.Errorf("the lease was renewed %d times in an hour; the others have ended: %t", went, ended)
				}
				// The delays are 1, 2, 4, … seconds, and then 5 minutes each.
				if failed < 15 || failed > 25 {
					t.Errorf("the task was started %d times in an hour", failed)
				}
				if text := out.String(); !strings.Contains(text, `task="delivering works"`) || !strings.Contains(text, "no such right") ||
					strings.Contains(text, "renewing") {
					t.Errorf("the log says %.1000s", text)
				}
			})
		})
	}
}

func TestRun_CompletedTaskDoesNotEndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began, starts := time.Now(), 0
		err := session.Run(ctx, []Task{{Name: "looking once", Run: func(context.Context, Session) error { starts++; return nil }}})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour || starts != 1 {
			t.Errorf("it was started %d times, and after %s got %v", starts, time.Since(began), err)
		}
	})
}
