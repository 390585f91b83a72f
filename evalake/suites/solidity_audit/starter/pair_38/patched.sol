// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title NoticeAccount
/// @notice Ether deposits that are withdrawn by request and paid out after a notice period.
contract NoticeAccount {
    enum Status {
        None,
        Open,
        Cancelled,
        Paid
    }

    struct Request {
        address account;
        uint256 amount;
        uint256 payableAt;
        Status status;
    }

    uint256 public constant NOTICE_PERIOD = 7 days;

    uint256 public totalBalance;
    uint256 public totalRequested;
    uint256 public nextRequestId = 1;

    mapping(address => uint256) public balanceOf;
    mapping(uint256 => Request) public requests;

    event Deposited(address indexed account, uint256 amount);
    event Requested(uint256 indexed id, address indexed account, uint256 amount, uint256 payableAt);
    event RequestCancelled(uint256 indexed id);
    event RequestPaid(uint256 indexed id, address indexed to, uint256 amount);

    error NotOpen(uint256 id);
    error NotRequester(address caller);
    error TooEarly(uint256 payableAt);
    error TransferFailed();

    /// @notice Deposits ether for the caller.
    function deposit() external payable {
        _credit(msg.sender, msg.value);
    }

    /// @notice Deposits ether for another account.
    function depositFor(address account) external payable {
        require(account != address(0), "zero address");
        _credit(account, msg.value);
    }

    /// @notice Requests a withdrawal; the amount leaves the balance at once.
    function requestWithdrawal(uint256 amount) external returns (uint256 id) {
        require(amount > 0, "nothing requested");
        balanceOf[msg.sender] -= amount;
        totalBalance -= amount;
        totalRequested += amount;
        id = nextRequestId++;
        requests[id] = Request(msg.sender, amount, block.timestamp + NOTICE_PERIOD, Status.Open);
        emit Requested(id, msg.sender, amount, requests[id].payableAt);
    }

    /// @notice Cancels an open request; its amount returns to the balance of the account that made it.
    function cancelRequest(uint256 id) external {
        Request storage request = requests[id];
        if (request.status != Status.Open) revert NotOpen(id);
        if (request.account != msg.sender) revert NotRequester(msg.sender);
        request.status = Status.Cancelled;
        totalRequested -= request.amount;
        totalBalance += request.amount;
        balanceOf[request.account] += request.amount;
        emit RequestCancelled(id);
    }

    /// @notice Pays a request out after the notice period, to an address of the requester's choice.
    function payRequest(uint256 id, address payable to) external {
        Request storage request = requests[id];
        if (request.status != Status.Open) revert NotOpen(id);
        if (request.account != msg.sender) revert NotRequester(msg.sender);
        if (block.timestamp < request.payableAt) revert TooEarly(request.payableAt);
        request.status = Status.Paid;
        totalRequested -= request.amount;
        emit RequestPaid(id, to, request.amount);
        (bool sent, ) = to.call{value: request.amount}("");
        if (!sent) revert TransferFailed();
    }

    /// @notice Whether the ether held covers all balances and open requests.
    function isCovered() external view returns (bool) {
        return address(this).balance >= totalBalance + totalRequested;
    }

    function _credit(address account, uint256 amount) private {
        require(amount > 0, "nothing sent");
        balanceOf[account] += amount;
        totalBalance += amount;
        emit Deposited(account, amount);
    }
}
