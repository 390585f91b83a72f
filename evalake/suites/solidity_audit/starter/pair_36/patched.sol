// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title NeighbourhoodCampaign
/// @notice Collects pledges in ether for a project; all go to the organiser if the goal is reached in time.
contract NeighbourhoodCampaign {
    enum State {
        Open,
        Failed,
        Successful,
        Finalized
    }

    uint256 public constant MIN_PLEDGE = 0.001 ether;
    uint256 public constant MAX_DURATION = 90 days;

    address public immutable organiser;
    uint256 public immutable goal;
    uint256 public immutable endsAt;
    string public project;

    uint256 public totalPledged;
    uint256 public backers;
    bool private finalized;

    mapping(address => uint256) public pledgeOf;

    event Pledged(address indexed backer, uint256 amount);
    event PledgeWithdrawn(address indexed backer, uint256 amount);
    event Finalized(uint256 amount);

    error WrongState(State current);
    error PledgeTooSmall(uint256 amount);
    error NothingPledged();
    error TransferFailed();

    modifier inState(State required) {
        State current = state();
        if (current != required) revert WrongState(current);
        _;
    }

    constructor(string memory project_, uint256 goal_, uint256 duration) {
        require(goal_ > 0, "no goal");
        require(duration > 0 && duration <= MAX_DURATION, "bad duration");
        organiser = msg.sender;
        project = project_;
        goal = goal_;
        endsAt = block.timestamp + duration;
    }

    /// @notice State that the campaign is in now.
    function state() public view returns (State) {
        if (finalized) {
            return State.Finalized;
        }
        if (block.timestamp < endsAt) {
            return State.Open;
        }
        return totalPledged >= goal ? State.Successful : State.Failed;
    }

    /// @notice Pledges the ether sent.
    function pledge() external payable inState(State.Open) {
        if (msg.value < MIN_PLEDGE) revert PledgeTooSmall(msg.value);
        if (pledgeOf[msg.sender] == 0) {
            backers += 1;
        }
        pledgeOf[msg.sender] += msg.value;
        totalPledged += msg.value;
        emit Pledged(msg.sender, msg.value);
    }

    /// @notice Takes the caller's pledge back while the campaign is open.
    function withdrawPledge() external inState(State.Open) {
        _returnPledge();
    }

    /// @notice Takes the caller's pledge back after the goal was missed.
    function claimRefund() external inState(State.Failed) {
        _returnPledge();
    }

    /// @notice Pays all pledges to the organiser of a successful campaign.
    function finalize() external inState(State.Successful) {
        require(address(this).balance >= totalPledged, "pledges not covered");
        finalized = true;
        emit Finalized(totalPledged);
        (bool sent, ) = organiser.call{value: address(this).balance}("");
        if (!sent) revert TransferFailed();
    }

    function _returnPledge() private {
        uint256 amount = pledgeOf[msg.sender];
        if (amount == 0) revert NothingPledged();
        pledgeOf[msg.sender] = 0;
        totalPledged -= amount;
        backers -= 1;
        emit PledgeWithdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        if (!sent) revert TransferFailed();
    }
}
