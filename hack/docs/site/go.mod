module github.com/clusterhub/clusterhub/hack/docs/site

go 1.26.0

require (
	github.com/yuin/goldmark v1.8.7
	golang.org/x/net v0.62.0
)
