"""An account on AWS that answers in order; botocore refuses what AWS's own description of its API does not allow."""

from botocore.stub import Stubber

from wanbench.measure.labs.aws import clients


class Stubbed(clients.Aws):
    """Answers in order, by service: a dict, or the code of an error with a message."""

    def __init__(self, **answers):
        super().__init__()
        self.stubbers = {}
        for service, given in answers.items():
            self.stubbers[service] = stubber = Stubber(self.client(service.replace("_", "-"), "us-east-1"))
            for operation, answer, *expected in given:
                if isinstance(answer, dict):
                    stubber.add_response(operation, answer, *expected)
                else:
                    stubber.add_client_error(operation, *answer, expected_params=expected[0] if expected else None)
            stubber.activate()

    def account(self):
        return "123456789012"

    def client(self, service, region):
        return super().client(service, "us-east-1")
